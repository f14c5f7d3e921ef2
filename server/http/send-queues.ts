import { readFile } from "node:fs/promises";
import type { Server, Socket } from "node:net";
import { type Clock, sleep } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { readIfExists } from "../../lib/read-if-exists.ts";

/** Returns the bytes of a connection that the kernel holds because the peer has not acknowledged them. */
export type SendQueues = (socket: Socket) => number | undefined;

const tables = ["/proc/net/tcp", "/proc/net/tcp6"];
/**
 * Matches a row of the tables: `sl local_address rem_address st tx_queue:rx_queue …` (proc(5)). All numbers
 * after `sl` are hexadecimal.
 */
const row = /^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) ([0-9A-F]+):([0-9A-F]{4}) [0-9A-F]{2} ([0-9A-F]{8}):/;

const unreadable =
  "the send queues of the kernel cannot be read; clients that read no data stay connected, and a stop waits up to 30 s for unsent data";

interface Queue {
  readonly localPort: number;
  readonly address: string;
  readonly port: number;
  readonly bytes: number;
}

/**
 * Reads the kernel's send queues. A read may fail, for example without a free file descriptor. The result of
 * a failed read is undefined, and the reader logs the first failure and the end of the failures. Only Linux
 * has these tables; other systems have no queues.
 */
export class SendQueueReader {
  readonly #log: Log;
  readonly #paths: readonly string[];
  #hasFailed = false;

  constructor(log: Log, paths: readonly string[] = tables) {
    this.#log = log;
    this.#paths = paths;
  }

  /** Returns the send queues of all connections. */
  async read(): Promise<SendQueues | undefined> {
    const text = await this.#readTables();
    return text === undefined ? undefined : parseSendQueues(text);
  }

  /** Returns the bytes that the clients of these ports have not acknowledged. */
  async unsentBytes(localPorts: readonly number[]): Promise<number | undefined> {
    const text = await this.#readTables();
    if (text === undefined) return undefined;
    return localPorts.reduce((sum, port) => sum + parseUnsentBytes(text, port), 0);
  }

  async #readTables(): Promise<string | undefined> {
    try {
      const text = await readTables(this.#paths);
      if (this.#hasFailed) this.#log.info({}, "the send queues of the kernel can be read again");
      this.#hasFailed = false;
      return text;
    } catch (error) {
      if (!this.#hasFailed) this.#log.error({ err: error }, unreadable);
      this.#hasFailed = true;
      return undefined;
    }
  }
}

export function parseSendQueues(text: string): SendQueues {
  const queues = new Map(
    parseQueues(text).map(({ localPort, address, port, bytes }) => [
      keyOf(localPort, readAddress(address), port),
      bytes,
    ]),
  );
  return ({ localPort, remoteAddress = "", remotePort }) =>
    queues.get(keyOf(localPort, canonical(remoteAddress), remotePort));
}

/**
 * Returns the bytes that the clients of a port have not acknowledged, including connections that this process
 * has closed.
 */
export async function unsentBytes(localPort: number): Promise<number> {
  return parseUnsentBytes(await readTables(tables), localPort);
}

function portOf(server: Server): number | undefined {
  const address = server.address();
  return typeof address === "object" ? address?.port : undefined;
}

const pollMs = 100;
/** A client that acknowledges no bytes for this time counts as disconnected. */
const deadMs = 30_000;

/**
 * Waits, after a server is closed, until clients have received all written bytes. A pod loses its network
 * when its process ends, and the kernel may still hold megabytes of audio at that time. The wait is bounded,
 * also while the send queues cannot be read.
 */
export function watchUnsentBytes(
  servers: readonly Server[],
  queues: SendQueueReader,
  clock: Clock,
): { gone(endMs: number): Promise<void> } {
  const ports = servers.flatMap((server) => portOf(server) ?? []);
  return {
    gone: async (endMs) => {
      if (ports.length === 0) return;
      let giveUpMs = clock.monotonicMs() + deadMs;
      let last = Number.POSITIVE_INFINITY;
      for (;;) {
        const bytes = (await queues.unsentBytes(ports)) ?? last;
        const nowMs = clock.monotonicMs();
        if (bytes < last) giveUpMs = nowMs + deadMs;
        last = bytes;
        if (bytes === 0 || nowMs >= Math.min(giveUpMs, endMs)) return;
        await sleep(clock, pollMs);
      }
    },
  };
}

export function parseUnsentBytes(text: string, localPort: number): number {
  return parseQueues(text).reduce((sum, queue) => sum + (queue.localPort === localPort ? queue.bytes : 0), 0);
}

async function readTables(paths: readonly string[]): Promise<string> {
  return (await Promise.all(paths.map((path) => readIfExists(readFile(path, "latin1"))))).join("\n");
}

function parseQueues(text: string): Queue[] {
  return text.split("\n").flatMap((line) => {
    const [, localPort = "", address = "", port = "", bytes = ""] = row.exec(line) ?? [];
    if (address === "") return [];
    return [{ localPort: parseHex(localPort), address, port: parseHex(port), bytes: parseHex(bytes) }];
  });
}

function parseHex(digits: string): number {
  return Number.parseInt(digits, 16);
}

function keyOf(localPort: number | undefined, address: string, port: number | undefined): string {
  return `${localPort} ${address} ${port}`;
}

/** Converts an address. The kernel prints an address as 32-bit numbers in little-endian order. */
function readAddress(hex: string): string {
  const bytes = Buffer.from(hex, "hex");
  bytes.swap32();
  if (bytes.length === 4) return bytes.join(".");
  const groups = bytes.toString("hex").match(/.{4}/g) ?? [];
  return canonical(groups.join(":"));
}

/** Returns one spelling for each address. An IPv4-mapped IPv6 address becomes an IPv4 address. */
function canonical(address: string): string {
  if (!address.includes(":")) return address;
  // Node appends the interface to a link-local address, and the table contains only the address.
  const [unscoped] = address.split("%");
  const { hostname } = new URL(`http://[${unscoped}]`);
  const mapped = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(hostname);
  if (!mapped) return hostname;
  const [high, low] = [Number.parseInt(mapped[1] ?? "", 16), Number.parseInt(mapped[2] ?? "", 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}
