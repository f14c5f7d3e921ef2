import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { ifThere } from "../if-there.ts";

/** Bytes that the kernel holds for a connection because the other side has not acknowledged them. */
export type SendQueues = (socket: Socket) => number | undefined;

const tables = ["/proc/net/tcp", "/proc/net/tcp6"];
/** `sl local_address rem_address st tx_queue:rx_queue …`, all in hexadecimal (proc(5)). */
const row = /^\s*\d+: ([0-9A-F]+):([0-9A-F]{4}) ([0-9A-F]+):([0-9A-F]{4}) [0-9A-F]{2} ([0-9A-F]{8}):/;

/** What the kernel says now of every connection; it knows nothing where there is no such table (not Linux). */
export async function readSendQueues(): Promise<SendQueues> {
  const texts = await Promise.all(tables.map((path) => ifThere(readFile(path, "latin1"))));
  return parseSendQueues(texts.join("\n"));
}

export function parseSendQueues(text: string): SendQueues {
  const queues = new Map<string, number>();
  for (const line of text.split("\n")) {
    const [, , localPort = "", address = "", port = "", queue = ""] = row.exec(line) ?? [];
    if (address === "") continue;
    const key = keyOf(Number.parseInt(localPort, 16), readAddress(address), Number.parseInt(port, 16));
    queues.set(key, Number.parseInt(queue, 16));
  }
  return ({ localPort, remoteAddress = "", remotePort }) =>
    queues.get(keyOf(localPort, canonical(remoteAddress), remotePort));
}

function keyOf(localPort: number | undefined, address: string, port: number | undefined): string {
  return `${localPort} ${address} ${port}`;
}

/** The kernel prints addresses as the 32-bit numbers of a little-endian machine. */
function readAddress(hex: string): string {
  const bytes = Buffer.from(hex, "hex");
  bytes.swap32();
  if (bytes.length === 4) return bytes.join(".");
  const groups = bytes.toString("hex").match(/.{4}/g) ?? [];
  return canonical(groups.join(":"));
}

/** One spelling of each address; an IPv4 caller of a dual socket is an IPv4 caller. */
function canonical(address: string): string {
  if (!address.includes(":")) return address;
  const [unscoped] = address.split("%"); // Node tells the interface of a link-local address, the table does not
  const { hostname } = new URL(`http://[${unscoped}]`);
  const mapped = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(hostname);
  if (!mapped) return hostname;
  const [high, low] = [Number.parseInt(mapped[1] ?? "", 16), Number.parseInt(mapped[2] ?? "", 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}
