import { ports } from "../../config/contract/names.ts";
import type { Pod } from "../facts/observed.ts";

const answerWithinMs = 2_000;
/** Far above what an API pod says. */
const mostBytes = 8 * 1024 * 1024;

/** Reads `/metrics` of an API pod. @throws Error when it does not respond in time */
export async function readApiMetrics({ status }: Pod): Promise<string> {
  const ip = status?.podIP ?? "";
  const host = ip.includes(":") ? `[${ip}]` : ip;
  const answer = await fetch(`http://${host}:${ports.api}/metrics`, {
    signal: AbortSignal.timeout(answerWithinMs),
    headers: { accept: "text/plain" },
  });
  if (!answer.ok || answer.body === null) throw new Error(`GET /metrics answered ${answer.status}`);
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of answer.body) {
    bytes += piece.length;
    if (bytes > mostBytes) throw new Error(`GET /metrics answered more than ${mostBytes} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}
