import { isIPv4, isIPv6 } from "node:net";
import { RateLimiterMemory, type RateLimiterRes } from "rate-limiter-flexible";
import { Refusal } from "../languages/refusal.ts";

/** Each way to sign in is counted separately, so that invalid requests for one do not block another. */
export type SignInEndpoint = "setup" | "login" | "join" | "account" | "provider";

/** Slows down guesses of passwords and links, by the target and by the network of the client. */
export interface Throttle {
  /** Counts an attempt for a name, a user or a link. @throws Refusal `rate_limited`. */
  enter(door: SignInEndpoint, name: string, address: string): Promise<void>;
  /** The same for an attempt without a known name. */
  enterAddress(door: SignInEndpoint, address: string): Promise<void>;
  /**
   * The password was correct: this attempt and earlier ones for this name from this network are forgotten.
   */
  passed(door: SignInEndpoint, name: string, address: string): Promise<void>;
}

const windowSeconds = 600;
/** Attempts from one network, so that an attacker does not lock out users of other networks. */
const triesOfName = 10;
/** Attempts from all networks together. */
const triesOfNameInAll = 100;
/** Many users may share one address. */
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

/** Limits how many audit entries unauthenticated clients cause. */
export interface UnknownNameLimiter {
  /** Whether another entry may be written. The log contains all of them. */
  isNoted(): Promise<boolean>;
}

/** Rejected sign-ins of unknown users in a window. */
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

/** An IPv4 address, or the /64 network of an IPv6 address, which one household or machine uses. */
export function networkOf(address: string): string {
  const [plain = ""] = address.split("%");
  const mapped = /^::ffff:([\d.]+)$/i.exec(plain)?.[1];
  if (mapped !== undefined && isIPv4(mapped)) return mapped;
  if (!isIPv6(plain)) return plain;
  // The canonical form has only hexadecimal groups.
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
