import { argon2, randomBytes, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import { Refusal } from "../languages/refusal.ts";

/** Hashes and verifies passwords. A hash is a PHC string of Argon2id. The work runs in Node's thread pool. */
export interface Passwords {
  hash(password: string): Promise<string>;
  /**
   * Returns whether the password is correct. The verification takes the same time if the user does not exist.
   * @param kept the stored hash, or undefined if the user does not exist.
   */
  verify(password: string, kept: string | undefined): Promise<boolean>;
}

const derive = promisify(argon2);

/** The minimum of OWASP's cheat sheet for Argon2id. One verification needs 19 MiB. */
const cost = { memory: 19_456, passes: 2, parallelism: 1 };
const saltBytes = 16;
const hashBytes = 32;
/**
 * The highest number of concurrent verifications. The limit bounds the memory for unauthenticated requests to
 * 76 MiB.
 */
const atOnce = 4;

export function createPasswords(): Passwords {
  let running = 0;
  const derived = async (password: string, { memory, passes, parallelism, nonce }: Kept) => {
    if (running >= atOnce) {
      throw new Refusal("overloaded", ({ signIn }) => signIn.manySignIns, { retryAfterSeconds: 1 });
    }
    running += 1;
    try {
      const message = password.normalize("NFKC");
      return await derive("argon2id", { message, nonce, parallelism, tagLength: hashBytes, memory, passes });
    } finally {
      running -= 1;
    }
  };
  const unknownUser = { ...cost, nonce: randomBytes(saltBytes), hash: randomBytes(hashBytes) };
  return {
    async hash(password) {
      const nonce = randomBytes(saltBytes);
      return write({ ...cost, nonce, hash: await derived(password, { ...cost, nonce, hash: nonce }) });
    },
    async verify(password, kept) {
      const expected = kept === undefined ? unknownUser : read(kept);
      const actual = await derived(password, expected);
      return timingSafeEqual(actual, expected.hash) && kept !== undefined;
    },
  };
}

interface Kept {
  /** The memory in KiB. */
  readonly memory: number;
  readonly passes: number;
  readonly parallelism: number;
  readonly nonce: Buffer;
  readonly hash: Buffer;
}

function write({ memory, passes, parallelism, nonce, hash }: Kept): string {
  const [salt, digest] = [nonce, hash].map((bytes) => bytes.toString("base64").replaceAll("=", ""));
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${salt}$${digest}`;
}

const phc = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([\w+/]+)\$([\w+/]+)$/;

function read(kept: string): Kept {
  const [, memory, passes, parallelism, nonce = "", hash = ""] = phc.exec(kept) ?? [];
  return {
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    nonce: Buffer.from(nonce, "base64"),
    hash: Buffer.from(hash, "base64"),
  };
}
