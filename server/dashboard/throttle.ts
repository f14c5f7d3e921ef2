import { RateLimiterMemory, type RateLimiterRes } from "rate-limiter-flexible";
import { Refusal } from "./languages/refusal.ts";

/** Slows down who guesses at passwords, by the name and by the address. */
export interface Throttle {
  /** Counts a try. @throws Failure `rate_limited`. */
  enter(name: string, address: string): Promise<void>;
  /** The same where no name is known yet. */
  enterAddress(address: string): Promise<void>;
  /** The password was right: earlier tries at this name are forgotten. */
  passed(name: string): Promise<void>;
}

const windowSeconds = 600;
const triesOfName = 10;
/** Many people may come from one address, that of a proxy. */
const triesOfAddress = 200;

export function createThrottle(): Throttle {
  const names = new RateLimiterMemory({ points: triesOfName, duration: windowSeconds });
  const addresses = new RateLimiterMemory({ points: triesOfAddress, duration: windowSeconds });
  return {
    async enter(name, address) {
      await consume(addresses, address);
      await consume(names, name);
    },
    enterAddress: (address) => consume(addresses, address),
    async passed(name) {
      await names.delete(name);
    },
  };
}

async function consume(limiter: RateLimiterMemory, what: string): Promise<void> {
  try {
    await limiter.consume(what);
  } catch (state) {
    if (state instanceof Error) throw state;
    const seconds = Math.ceil((state as RateLimiterRes).msBeforeNext / 1000);
    throw new Refusal("rate_limited", ({ signIn }) => signIn.manyTries(Math.ceil(seconds / 60)), {
      retryAfterSeconds: seconds,
    });
  }
}
