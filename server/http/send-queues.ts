import { readFile } from "node:fs/promises";
import type { Server, Socket } from "node:net";
import { type Clock, sleep } from "../../lib/clock.ts";
import { readIfExists } from "../../lib/read-if-exists.ts";

/** Returns the bytes of a connection that the kernel holds because the peer has not acknowledged them. */
export type SendQueues = (socket: Socket) => number | undefined;

const tables = ["/proc/net/tcp", "/proc/net/tcp6"];
/** `sl local_address rem_address st tx_queue:rx_queue …`, all in hexadecimal (proc(5)). */
const row = /^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) ([0-9A-F]+):([0-9A-F]{4}) [0-9A-F]{2} ([0-9A-F]{8}):/;

interface Queue {
  readonly localPort: number;
  readonly address: string;
  readonly port: number;
  readonly bytes: number;
}

/** Reads the send queues of all connections. Only Linux has these tables; other systems have no queues. */
export async function readSendQueues(): Promise<SendQueues> {
  return parseSendQueues(await readTables());
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
  return parseUnsentBytes(await readTables(), localPort);
}

function portOf(server: Server): number | undefined {
  const address = server.address();
  return typeof address === "object" ? address?.port : undefined;
}

const pollMs = 100;
/** A client that acknowledges nothing for this time counts as disconnected. */
const deadMs = 30_000;

/**
 * Waits, after a server is closed, until clients have received all written bytes. A pod loses its network when
 * its process ends, and the kernel may still hold megabytes of audio at that time.
 */
export function watchUnsentBytes(
  servers: readonly Server[],
  clock: Clock,
): { gone(endMs: number): Promise<void> } {
  const ports = servers.flatMap((server) => portOf(server) ?? []);
  return {
    gone: async (endMs) => {
      if (ports.length === 0) return;
      let giveUpMs = clock.monotonicMs() + deadMs;
      let last = Number.POSITIVE_INFINITY;
      for (;;) {
        const bytes = (await Promise.all(ports.map(unsentBytes))).reduce((sum, some) => sum + some, 0);
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

async function readTables(): Promise<string> {
  return (await Promise.all(tables.map((path) => readIfExists(readFile(path, "latin1"))))).join("\n");
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
  // Node appends the interface to a link-local address. The table does not.
  const [unscoped] = address.split("%");
  const { hostname } = new URL(`http://[${unscoped}]`);
  const mapped = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(hostname);
  if (!mapped) return hostname;
  const [high, low] = [Number.parseInt(mapped[1] ?? "", 16), Number.parseInt(mapped[2] ?? "", 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}
