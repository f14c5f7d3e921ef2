import { isIPv4, isIPv6 } from "node:net";
import { RateLimiterMemory, type RateLimiterRes } from "rate-limiter-flexible";
import { Refusal } from "../languages/refusal.ts";

/** Each way in is counted by itself, so that junk sent to one does not close another. */
export type SignInEndpoint = "setup" | "login" | "join" | "account" | "provider";

/** Slows down guessing at passwords and links, by what is guessed at and by the network of the guesser. */
export interface Throttle {
  /** Counts a try at a name, a person or a link. @throws Refusal `rate_limited`. */
  enter(door: SignInEndpoint, name: string, address: string): Promise<void>;
  /** The same where no name is known yet. */
  enterAddress(door: SignInEndpoint, address: string): Promise<void>;
  /** The password was right: this try, and earlier ones at this name from this network, are forgotten. */
  passed(door: SignInEndpoint, name: string, address: string): Promise<void>;
}

const windowSeconds = 600;
/** From one network; whoever guesses from one does not lock out those who come from others. */
const triesOfName = 10;
/** From all networks together. */
const triesOfNameInAll = 100;
/** Many people may come from one address. */
const triesOfAddress = 200;

export function createThrottle(): Throttle {
  const limiter = (points: number) => new RateLimiterMemory({ points, duration: windowSeconds });
  const names = limiter(triesOfName);
  const namesInAll = limiter(triesOfNameInAll);
  const addresses = limiter(triesOfAddress);
  const keysOf = (door: SignInEndpoint, name: string, address: string) => ({
    addressKey: `${door} ${networkOf(address)}`,
    nameKey: `${door} ${networkOf(address)} ${name}`,
    nameInAllKey: `${door} ${name}`,
  });
  return {
    async enter(door, name, address) {
      const { addressKey, nameKey, nameInAllKey } = keysOf(door, name, address);
      await consume(addresses, addressKey);
      await consume(names, nameKey);
      await consume(namesInAll, nameInAllKey);
    },
    enterAddress: (door, address) => consume(addresses, `${door} ${networkOf(address)}`),
    async passed(door, name, address) {
      const { addressKey, nameKey, nameInAllKey } = keysOf(door, name, address);
      await names.delete(nameKey);
      await addresses.reward(addressKey);
      await namesInAll.reward(nameInAllKey);
    },
  };
}

/** Bounds what strangers have written into the record of changes. */
export interface UnknownNameLimiter {
  /** Whether one more is written down; the log has all. */
  isNoted(): Promise<boolean>;
}

/** Refused sign-ins of nobody knows whom in a window. */
const notedStrangers = 100;

export function createUnknownNameLimiter(): UnknownNameLimiter {
  const all = new RateLimiterMemory({ points: notedStrangers, duration: windowSeconds });
  return {
    isNoted: () =>
      all.consume("all").then(
        () => true,
        () => false,
      ),
  };
}

/** An IPv4 address, or the /64 network of an IPv6 address, all of which one household or machine may use. */
export function networkOf(address: string): string {
  const [plain = ""] = address.split("%");
  const mapped = /^::ffff:([\d.]+)$/i.exec(plain)?.[1];
  if (mapped !== undefined && isIPv4(mapped)) return mapped;
  if (!isIPv6(plain)) return plain;
  // the canonical form has hexadecimal groups alone
  const canonical = new URL(`http://[${plain}]/`).hostname.slice(1, -1);
  const [head = "", tail] = canonical.split("::");
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) {
    const last = tail === "" ? [] : tail.split(":");
    groups.push(...Array<string>(8 - groups.length - last.length).fill("0"), ...last);
  }
  return `${groups.slice(0, 4).join(":")}::/64`;
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
