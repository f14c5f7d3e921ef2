import { ports } from "../../config/contract/names.ts";
import type { Pod } from "../facts/observed.ts";

const responseWithinMs = 2_000;
/** The limit for a response, which is far larger than the metrics of an API pod. */
const mostBytes = 8 * 1024 * 1024;

/** Reads `/metrics` of an API pod. Throws if the pod does not respond in time. */
export async function readApiMetrics({ status }: Pod): Promise<string> {
  const ip = status?.podIP ?? "";
  const host = ip.includes(":") ? `[${ip}]` : ip;
  const response = await fetch(`http://${host}:${ports.api}/metrics`, {
    signal: AbortSignal.timeout(responseWithinMs),
    headers: { accept: "text/plain" },
  });
  if (!response.ok || response.body === null)
    throw new Error(`GET /metrics responded with status ${response.status}`);
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of response.body) {
    bytes += piece.length;
    if (bytes > mostBytes) throw new Error(`GET /metrics responded with more than ${mostBytes} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}
