import { isIPv4, isIPv6 } from "node:net";
import { RateLimiterMemory, type RateLimiterRes } from "rate-limiter-flexible";
import { Refusal } from "../languages/refusal.ts";

/**
 * The ways to sign in. The attempts of each way are counted separately, so that failures in one way do not
 * block another way.
 */
export type SignInEndpoint = "setup" | "login" | "join" | "account" | "provider";

/** Limits attempts to guess passwords and links, for each name and for each network of clients. */
export interface Throttle {
  /** Counts an attempt for a name, a user or a link. @throws Refusal `rate_limited` */
  enter(endpoint: SignInEndpoint, name: string, address: string): Promise<void>;
  /** Counts an attempt without a known name. @throws Refusal `rate_limited` */
  enterAddress(endpoint: SignInEndpoint, address: string): Promise<void>;
  /**
   * Records a correct password. Earlier attempts for this name from this network no longer count.
   */
  passed(endpoint: SignInEndpoint, name: string, address: string): Promise<void>;
}

const windowSeconds = 600;
/**
 * The highest number of attempts for one name from one network, so that an attacker does not block users in
 * other networks.
 */
const triesOfName = 10;
/** The highest number of attempts for one name from all networks together. */
const triesOfNameInAll = 100;
/**
 * The highest number of attempts from one network. The number is high, because many users may share one
 * address.
 */
const triesOfAddress = 200;

export function createThrottle(): Throttle {
  const limiter = (points: number) => new RateLimiterMemory({ points, duration: windowSeconds });
  const names = limiter(triesOfName);
  const namesInAll = limiter(triesOfNameInAll);
  const addresses = limiter(triesOfAddress);
  const keysOf = (endpoint: SignInEndpoint, name: string, address: string) => ({
    addressKey: `${endpoint} ${networkOf(address)}`,
    nameKey: `${endpoint} ${networkOf(address)} ${name}`,
    nameInAllKey: `${endpoint} ${name}`,
  });
  return {
    async enter(endpoint, name, address) {
      const { addressKey, nameKey, nameInAllKey } = keysOf(endpoint, name, address);
      await consume(addresses, addressKey);
      await consume(names, nameKey);
      await consume(namesInAll, nameInAllKey);
    },
    enterAddress: (endpoint, address) => consume(addresses, `${endpoint} ${networkOf(address)}`),
    async passed(endpoint, name, address) {
      const { addressKey, nameKey, nameInAllKey } = keysOf(endpoint, name, address);
      await names.delete(nameKey);
      await addresses.reward(addressKey);
      await namesInAll.reward(nameInAllKey);
    },
  };
}

/** Limits the number of audit log entries that unauthenticated clients cause. */
export interface UnknownNameLimiter {
  /**
   * Returns whether another entry may be written, and counts the entry. The log of the server contains all
   * failed sign-ins.
   */
  isNoted(): Promise<boolean>;
}

/** The highest number of audit log entries for unknown users in a window. */
const mostUnknownUsers = 100;

export function createUnknownNameLimiter(): UnknownNameLimiter {
  const all = new RateLimiterMemory({ points: mostUnknownUsers, duration: windowSeconds });
  return {
    isNoted: () =>
      all.consume("all").then(
        () => true,
        () => false,
      ),
  };
}

/**
 * Returns an IPv4 address, or the /64 network of an IPv6 address, because one household or machine uses a
 * whole /64 network.
 */
export function networkOf(address: string): string {
  const [plain = ""] = address.split("%");
  const mapped = /^::ffff:([\d.]+)$/i.exec(plain)?.[1];
  if (mapped !== undefined && isIPv4(mapped)) return mapped;
  if (!isIPv6(plain)) return plain;
  // `URL` converts the address to its canonical form, which has only hexadecimal groups.
  const canonical = new URL(`http://[${plain}]/`).hostname.slice(1, -1);
  const [head = "", tail] = canonical.split("::");
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) {
    const last = tail === "" ? [] : tail.split(":");
    groups.push(...Array<string>(8 - groups.length - last.length).fill("0"), ...last);
  }
  return `${groups.slice(0, 4).join(":")}::/64`;
}

async function consume(limiter: RateLimiterMemory, key: string): Promise<void> {
  try {
    await limiter.consume(key);
  } catch (state) {
    if (state instanceof Error) throw state;
    const seconds = Math.ceil((state as RateLimiterRes).msBeforeNext / 1000);
    throw new Refusal("rate_limited", ({ signIn }) => signIn.manyTries(Math.ceil(seconds / 60)), {
      retryAfterSeconds: seconds,
    });
  }
}
