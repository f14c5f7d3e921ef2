/**
 * A model tier without synthesis. The program sends recorded audio in the wire format, at real time or as
 * fast as the client reads. It prints its port, and ends when its parent process ends.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Invocation } from "../../../server/contract/speech.ts";
import { encodeFrame, wireType } from "../../../server/contract/wire.ts";
import { cannedAudio, readReplayText, replayRate } from "./audio.ts";

/**
 * The length of a frame: a tenth of a second at real time, and otherwise the length of the engines' frames.
 */
const pieceSeconds = { inTime: 0.1, atOnce: 0.4 };
const recordedSeconds = 12;

const recorded = cannedAudio(recordedSeconds);
const inTimePieces = piecesOf(pieceSeconds.inTime);
const atOncePieces = piecesOf(pieceSeconds.atOnce);
const server = createServer((request, response) => {
  if (request.url === "/ready") response.end("ready");
  else respond(request, response).catch(() => response.destroy()); // The client disconnected.
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
console.log((server.address() as AddressInfo).port);
process.once("disconnect", () => process.exit());

async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body: Buffer[] = [];
  for await (const piece of request) body.push(piece as Buffer);
  const { text } = JSON.parse(Buffer.concat(body).toString()) as Invocation;
  const { seconds, inTime } = readReplayText(text);
  response.writeHead(200, { "content-type": wireType });
  await pipeline(wire(seconds, inTime), response);
}

async function* wire(seconds: number, inTime: boolean): AsyncGenerator<Buffer, void, void> {
  const { samples, frames } = inTime ? inTimePieces : atOncePieces;
  yield encodeFrame({ kind: "head", rate: replayRate, engine: "replay" });
  const count = Math.round((seconds * replayRate) / samples);
  const startedAt = performance.now();
  for (let i = 0; i < count; i++) {
    if (inTime) await until(startedAt + (1000 * i * samples) / replayRate);
    yield frames[i % frames.length] ?? Buffer.alloc(0);
  }
  yield encodeFrame({ kind: "end", samples: count * samples });
}

function piecesOf(seconds: number): { samples: number; frames: Buffer[] } {
  const samples = Math.round(seconds * replayRate);
  const frames = Array.from({ length: Math.floor(recorded.length / samples) }, (_, i) =>
    encodeFrame({ kind: "audio", samples: recorded.subarray(i * samples, (i + 1) * samples) }),
  );
  return { samples, frames };
}

async function until(timeMs: number): Promise<void> {
  const wait = timeMs - performance.now();
  if (wait > 0) await sleep(wait);
}
