import { Agent, type Dispatcher } from "undici";
import { Failure, type FieldError, isErrorCode } from "../errors.ts";
import type { Invocation } from "../speech.ts";
import { decodeFrames, type WireFrame, wireType } from "../wire.ts";
import type { Replica, ReplicaChooser } from "./replicas.ts";

/** Speech on its way from a model tier: pulled, never pushed. */
export interface Speech {
  /** Hz of the audio as the engine made it. */
  readonly rate: number;
  readonly engine: string;
  /**
   * Audio and word times in order, beginning with the first audio, which has arrived already. Ends when the speech is complete.
   * @throws Failure when the model fails or its stream is cut.
   */
  readonly frames: AsyncIterable<SpeechFrame>;
  /** Stops the model and frees its replica; may be called at any time and more than once. */
  close(): void;
}

export type SpeechFrame = Extract<WireFrame, { kind: "audio" | "words" }>;

export interface CallContext {
  readonly requestId: string;
  /** Aborts when the caller hangs up. */
  readonly signal: AbortSignal;
}

export interface ModelsOptions {
  readonly chooser: ReplicaChooser;
  /** The internal token as it is now; undefined while there is none. */
  readonly token: () => string | undefined;
  /** Longest wait for the first audio. */
  readonly firstAudioTimeoutMs: number;
  /** Longest silence of a model between two pieces of its stream. */
  readonly stallTimeoutMs: number;
}

export interface Models {
  /**
   * Speaks, once the first audio is there. Failures before it are tried on another replica.
   * @throws Failure as the caller shall see it.
   */
  speak(invocation: Invocation, context: CallContext): Promise<Speech>;
  close(): Promise<void>;
}

/** Replicas asked for one request. */
const maxAttempts = 3;
/** An error body of a model tier is a small problem document. */
const maxProblemBytes = 64 * 1024;

export function createModels(options: ModelsOptions): Models {
  const agent = new Agent({
    keepAliveTimeout: 30_000,
    headersTimeout: options.firstAudioTimeoutMs,
    bodyTimeout: options.stallTimeoutMs,
    connectTimeout: 2000,
    pipelining: 1,
  });
  return {
    speak: (invocation, context) => speakSomewhere({ ...options, agent }, invocation, context),
    close: () => agent.destroy(),
  };
}

type Caller = ModelsOptions & { readonly agent: Dispatcher };

async function speakSomewhere(caller: Caller, invocation: Invocation, context: CallContext): Promise<Speech> {
  const tried = new Set<string>();
  let failure: Failure | undefined;
  let mayBeStale = true;
  while (tried.size < maxAttempts) {
    const replica = caller.chooser.choose(invocation.modelId, tried);
    if (!replica) break;
    try {
      return await speakOn(caller, replica, invocation, context);
    } catch (error) {
      failure = asFailure(error, context.signal);
      if (!isWorthAnotherReplica(failure) || context.signal.aborted) throw failure;
      if (!(mayBeStale && isStaleConnection(error))) tried.add(replica.url);
      mayBeStale = false;
    }
  }
  throw failure ?? unreachable(invocation);
}

function unreachable({ modelId }: Invocation): Failure {
  return new Failure(
    "model_unreachable",
    `No replica of ${modelId} takes requests now; try again in a moment.`,
    { retryAfterSeconds: 2 },
  );
}

/** A kept-alive connection that the other side closed as we wrote: says nothing about the replica, so ask it once more. */
function isStaleConnection(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === "UND_ERR_SOCKET" || code === "ECONNRESET" || code === "EPIPE";
}

/** What another replica may do better; an invalid request stays invalid. */
function isWorthAnotherReplica({ code }: Failure): boolean {
  return ["model_failed", "model_unreachable", "saturated", "draining", "unauthorized"].includes(code);
}

function asFailure(error: unknown, signal: AbortSignal): Failure {
  if (error instanceof Failure) return error;
  const code = (error as { code?: unknown }).code;
  if (!signal.aborted && isTimeout(error, code)) {
    return new Failure("deadline_exceeded", "The model gave no audio in time; try again.", { cause: error });
  }
  const isUnreachable = code === "ECONNREFUSED" || code === "UND_ERR_CONNECT_TIMEOUT" || code === "ENOTFOUND";
  return isUnreachable
    ? new Failure("model_unreachable", "The model does not answer now; try again in a moment.", {
        retryAfterSeconds: 2,
        cause: error,
      })
    : new Failure("model_failed", "The model failed before it spoke; send the request again.", {
        cause: error,
      });
}

function isTimeout(error: unknown, code: unknown): boolean {
  return (
    code === "UND_ERR_HEADERS_TIMEOUT" ||
    code === "UND_ERR_BODY_TIMEOUT" ||
    (error instanceof DOMException && error.name === "TimeoutError")
  );
}

async function speakOn(
  caller: Caller,
  replica: Replica,
  invocation: Invocation,
  context: CallContext,
): Promise<Speech> {
  const free = caller.chooser.occupy(replica);
  const stop = new AbortController();
  const close = () => {
    stop.abort();
    context.signal.removeEventListener("abort", close);
    free();
  };
  context.signal.addEventListener("abort", close, { once: true });
  const deadline = setTimeout(
    () => stop.abort(new DOMException("no audio in time", "TimeoutError")),
    caller.firstAudioTimeoutMs,
  );
  try {
    context.signal.throwIfAborted();
    const body = await invoke(caller, replica, invocation, context.requestId, stop.signal);
    return await awaitFirstAudio(body, close);
  } catch (error) {
    close();
    throw error;
  } finally {
    clearTimeout(deadline);
  }
}

async function invoke(
  { agent, token }: Caller,
  { url }: Replica,
  invocation: Invocation,
  requestId: string,
  signal: AbortSignal,
): Promise<Dispatcher.ResponseData["body"]> {
  const secret = token();
  const answer = await agent.request({
    origin: url,
    path: "/invocations",
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: wireType,
      "x-request-id": requestId,
      ...(secret !== undefined && { authorization: `Bearer ${secret}` }),
    },
    body: JSON.stringify(invocation),
    signal,
  });
  if (answer.statusCode !== 200) throw await readProblem(answer);
  return answer.body;
}

/** A model tier's refusal, as its own problem document tells it. */
async function readProblem({ statusCode, body, headers }: Dispatcher.ResponseData): Promise<Failure> {
  const problem = parseProblem(await readBounded(body, maxProblemBytes));
  const code = problem.code;
  if (!isErrorCode(code) || code === "unauthorized") {
    return new Failure(
      "model_failed",
      "The model tier refused the API tier; its operator finds why in the logs.",
      {
        cause: new Error(`the model tier answered ${statusCode} ${String(code ?? "")}`),
      },
    );
  }
  const retryAfter = Number(headers["retry-after"]);
  return new Failure(code, typeof problem.detail === "string" ? problem.detail : "The model refused.", {
    ...(Array.isArray(problem.errors) && { fields: problem.errors as FieldError[] }),
    ...(Number.isInteger(retryAfter) && { retryAfterSeconds: retryAfter }),
  });
}

function parseProblem(text: string): Partial<Record<"code" | "detail" | "errors", unknown>> {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {}; // not our problem document; the status alone is told
  }
}

async function readBounded(body: AsyncIterable<Buffer>, limit: number): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > limit) break;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

async function awaitFirstAudio(body: AsyncIterable<Uint8Array>, close: () => void): Promise<Speech> {
  const wire = decodeFrames(body);
  const before: SpeechFrame[] = [];
  let head: Extract<WireFrame, { kind: "head" }> | undefined;
  let ended = false;
  while (!ended && !before.some((frame) => frame.kind === "audio")) {
    const { value, done } = await wire.next();
    if (done) break;
    if (value.kind === "error") throw value.failure;
    if (value.kind === "head") head = value;
    else if (value.kind === "end") ended = true;
    else before.push(value);
  }
  if (!head)
    throw new Failure("model_failed", "The model sent no head; its version may not fit this API tier's.");
  return { rate: head.rate, engine: head.engine, frames: frames(before, wire, ended), close };
}

async function* frames(
  before: readonly SpeechFrame[],
  wire: AsyncGenerator<WireFrame, void, void>,
  ended: boolean,
): AsyncGenerator<SpeechFrame, void, void> {
  let received = 0;
  const counted = (frame: SpeechFrame) => {
    if (frame.kind === "audio") received += frame.samples.length;
    return frame;
  };
  for (const frame of before) yield counted(frame);
  if (ended) return;
  for await (const frame of told(wire)) {
    if (frame.kind === "error") throw frame.failure;
    if (frame.kind === "end" && frame.samples !== received) throw incomplete(frame.samples, received);
    if (frame.kind === "audio" || frame.kind === "words") yield counted(frame);
  }
}

/** The same frames; what the socket throws becomes a failure that a caller understands. */
async function* told(wire: AsyncIterable<WireFrame>): AsyncGenerator<WireFrame, void, void> {
  try {
    yield* wire;
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure("model_failed", "The model's stream broke off; send the request again.", {
      cause: error,
    });
  }
}

function incomplete(sent: number, received: number): Failure {
  return new Failure(
    "model_failed",
    `Of the model's ${sent} samples ${received} arrived; send the request again.`,
  );
}
