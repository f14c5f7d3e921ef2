/**
 * Simulates vLLM on real sockets, with the command line `serve FOLDER --port N …`. It writes the codes of the
 * tiny model slot by slot. `POST /script` with a `Script` as JSON selects its further behaviour, such as
 * failures.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { special, tinyCodec } from "../generator/tiny-model.ts";

export interface Script {
  /** The behaviour. With `freeze`, health checks hang too. */
  readonly does:
    | "speak"
    | "nonsense"
    | "hang"
    | "freeze"
    | "break off"
    | "refuse"
    | "no speech"
    | "out of memory"
    | "die";
  /**
   * The number of completions with this behaviour. Without it, all completions have it. Health checks, which
   * request one token, are not counted.
   */
  readonly times?: number;
  readonly tokensPerSecond?: number;
  /** Ends a completion after this many tokens. */
  readonly mostTokens?: number;
  /** Tokens that are written before the speech. */
  readonly preamble?: readonly number[];
  /** Stops writing after this many tokens, and waits until the client disconnects. */
  readonly holdsAfter?: number;
}

interface Ask {
  readonly max_tokens: number;
  readonly prompt: readonly number[];
}

/** The state that `GET /asked` returns. */
export interface Asked {
  readonly running: number;
  /** The number of clients that disconnected before the end. */
  readonly hungUp: number;
  readonly asked: readonly Ask[];
  /** The bodies of the requests for audio. */
  readonly askedAudio: readonly object[];
  /** The tokens of the latest completion. */
  readonly lastWritten: readonly number[];
}

const { values } = parseArgs({
  allowPositionals: true,
  strict: false,
  options: { port: { type: "string" }, host: { type: "string" } },
});
let script = JSON.parse(process.env.SCRIPT ?? '{"does":"speak"}') as Script;
let remainingCompletions = script.times ?? Number.POSITIVE_INFINITY;
let running = 0;
const asked: Ask[] = [];
const askedAudio: object[] = [];
let hungUp = 0;
let lastWritten: number[] = [];

const server = createServer((request, response) => void answer(request, response));
server.listen(Number(values.port), String(values.host), () =>
  console.log(`INFO 11-22 01:00:00 [api.py:1] listening on ${values.host}`),
);
process.on("SIGTERM", () => {
  console.log("INFO 11-22 01:00:00 [api.py:2] Shutting down");
  process.exit();
});

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const key = process.env.VLLM_API_KEY;
  if (request.url === "/health") return void response.writeHead(200).end();
  if (request.url === "/metrics")
    return void response
      .setHeader("content-type", "text/plain")
      .end(`vllm:num_requests_running ${running}\n`);
  if (request.url === "/asked")
    return void response.end(JSON.stringify({ running, asked, askedAudio, hungUp, lastWritten }));
  const body = JSON.parse(await text(request)) as Ask & Script;
  if (request.url === "/script") {
    script = body;
    remainingCompletions = body.times ?? Number.POSITIVE_INFINITY;
    return void response.end();
  }
  if (request.headers.authorization !== `Bearer ${key}`) return void response.writeHead(401).end();
  running++;
  if (request.url === "/v1/audio/speech") {
    askedAudio.push(body);
    await utter(response);
  } else await complete(body, response);
  running--;
}

async function complete(ask: Ask, response: ServerResponse): Promise<void> {
  const isProof = ask.max_tokens === 1;
  if (!isProof) asked.push(ask);
  response.once("close", () => {
    if (!response.writableFinished) hungUp++;
  });
  const does = script.does === "freeze" || (!isProof && remainingCompletions-- > 0) ? script.does : "speak";
  if (does === "die") process.kill(process.pid, "SIGKILL");
  if (does === "refuse") return void response.writeHead(400).end();
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  if (does === "hang" || does === "freeze") return void (await disconnected(response));
  const most = Math.min(ask.max_tokens, script.mostTokens ?? Number.POSITIVE_INFINITY);
  await speak(does === "no speech" ? 0 : most, does, response);
  if (response.destroyed) return;
  const end = { token_ids: does === "no speech" ? [special.stop] : [], finish_reason: "stop" };
  sendChoice(response, end);
  response.end("data: [DONE]\n\n");
}

async function speak(most: number, does: Script["does"], response: ServerResponse): Promise<void> {
  const written: number[] = [];
  lastWritten = written;
  if (script.preamble) sendChoice(response, { token_ids: script.preamble, finish_reason: null });
  for (let at = 0; at < most && !response.destroyed; at += tinyCodec.slots.length) {
    if (script.holdsAfter !== undefined && at >= script.holdsAfter)
      return void (await disconnected(response));
    const isLate = at >= 8 * tinyCodec.slots.length;
    if (does === "break off" && isLate) return void response.destroy();
    if (does === "out of memory" && isLate) return void runOut(response);
    const length = Math.min(tinyCodec.slots.length, most - at);
    const tokens = Array.from({ length }, (_, slot) => (does === "nonsense" ? 5 : token(at, slot)));
    written.push(...tokens);
    sendChoice(response, { token_ids: tokens, finish_reason: null });
    if (script.tokensPerSecond) await sleep((1000 * length) / script.tokensPerSecond);
  }
}

/** Fails like vLLM without memory: the engine process ends, streams get an error, and the server ends. */
function runOut(response: ServerResponse): void {
  console.log("ERROR 11-22 01:00:00 [core.py:1] torch.OutOfMemoryError: CUDA out of memory.");
  const error = { message: "EngineCore encountered an issue.", code: 500 };
  response.end(`data: ${JSON.stringify({ error })}\n\ndata: [DONE]\n\n`, () =>
    setTimeout(() => process.exit(1), 50),
  );
}

/** Sends one second of audio as raw samples, in chunks that split samples. */
async function utter(response: ServerResponse): Promise<void> {
  response.writeHead(200, { "content-type": "audio/pcm" });
  const bytes = Buffer.from(Int16Array.from({ length: tinyCodec.rate }, (_, i) => i).buffer);
  for (let at = 0; at < bytes.length && !response.destroyed; at += 4801) {
    response.write(bytes.subarray(at, at + 4801));
    await sleep(1);
  }
  response.end();
}

function token(at: number, slot: number): number {
  return tinyCodec.base + slot * tinyCodec.codebook + ((at * 31 + slot * 7) % tinyCodec.codebook);
}

function sendChoice(response: ServerResponse, choice: object): void {
  response.write(`data: ${JSON.stringify({ choices: [{ index: 0, text: "", ...choice }] })}\n\n`);
}

function disconnected(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => response.once("close", resolve));
}

async function text(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const piece of request) body += String(piece);
  return body;
}
