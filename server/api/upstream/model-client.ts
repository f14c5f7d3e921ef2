import { Agent, type Dispatcher } from "undici";
import type { Clock } from "../../../lib/clock.ts";
import { type ErrorCode, Failure } from "../../contract/errors.ts";
import type { Invocation } from "../../contract/speech.ts";
import type { Attributes, Span } from "../../tracing/span.ts";
import { invoke } from "./invoke.ts";
import type { LoadReport } from "./load-report.ts";
import type { LoadTracker } from "./load-tracker.ts";
import { PoolStream, type PoolStreamFacts } from "./pool-stream.ts";
import type { Replica, ReplicaSelector } from "./replicas.ts";
import type { RequestHold } from "./request-hold.ts";
import { awaitFirstAudio, type StartedSpeech } from "./speech-frames.ts";

/** Speech from a model tier. The reader pulls the frames, so that a slow client slows the model. */
export interface SynthesisStream extends StartedSpeech {
  /** Base URL of the replica. */
  readonly replica: string;
  /** Stops the synthesis and frees the replica. Further calls have no effect. */
  close(): void;
}

export interface CallContext {
  readonly requestId: string;
  /** ID of the client's API key, for the fair queue of the model tier. */
  readonly caller: string;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** Span of the request. Each invocation of a replica has a child span. */
  readonly span: Span;
  /** Called with out-of-vocabulary words of the text. */
  readonly onOovs?: (words: readonly string[]) => void;
  /** A replica that failed after its first audio, and its failure. The replica is not tried again. */
  readonly after?: { readonly replica: string; readonly failure: Failure };
  /** Called before each attempt, with the error code of the previous attempt. */
  readonly onAttempt: (failed: ErrorCode | undefined) => void;
}

export interface ModelClientOptions {
  readonly chooser: ReplicaSelector;
  readonly load: Pick<LoadTracker, "occupy" | "firstAudio">;
  readonly requestHold: RequestHold;
  /** Called for each finished stream of a replica. */
  readonly onPoolStream: (facts: PoolStreamFacts) => void;
  /** Returns the base URLs of the replicas that do not have this voice. */
  readonly replicasWithout: (voiceId: string) => ReadonlySet<string>;
  /** Returns the current internal token. Undefined without a token. */
  readonly token: () => string | undefined;
  /** Longest wait for the first audio. */
  readonly firstAudioTimeoutMs: number;
  /** Longest pause of a model between two pieces of its stream. */
  readonly stallTimeoutMs: number;
  readonly clock: Clock;
}

export interface ModelClient {
  /**
   * Starts a synthesis. Resolves with the first audio. A failure before the first audio is retried on another
   * replica.
   * @throws Failure with a message for the client.
   */
  speak(invocation: Invocation, context: CallContext): Promise<SynthesisStream>;
  close(): Promise<void>;
}

/** Highest number of replicas that are tried for one request. */
const maxAttempts = 3;
/**
 * Highest number of replicas that may fail for one request. A text that crashes engines must not reach every
 * replica.
 */
const mostBroken = 2;
/** Highest number of full replicas that are tried before the request waits in the queue of a replica. */
const mostFull = 8;

export function createModelClient(options: ModelClientOptions): ModelClient {
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

type Caller = ModelClientOptions & { readonly agent: Dispatcher };

async function speakSomewhere(
  caller: Caller,
  invocation: Invocation,
  context: CallContext,
): Promise<SynthesisStream> {
  const { signal } = context;
  const search = new Search(caller, invocation, context.after);
  for (let found = await search.next(signal); found; found = await search.next(signal)) {
    const { replica } = found;
    context.onAttempt(search.failure?.code);
    const stream = new PoolStream(replica, signal, {
      ...caller,
      onPoolStream: (facts) => {
        if (facts.outcome === "error") caller.chooser.failed(replica);
        caller.onPoolStream(facts);
      },
    });
    try {
      return await speakOn(caller, { ...found, stream }, invocation, context);
    } catch (error) {
      const { failure, isStale } = search.failed(found, error, signal);
      if (isStale) stream.left();
      else stream.failed(failure);
      if (signal.aborted || !search.mayGoOn) throw failure;
    }
  }
  throw search.failure ?? unreachable(invocation);
}

interface FoundReplica {
  readonly replica: Replica;
  /** Whether the request may wait in the queue of the replica, because no other replica has a free slot. */
  readonly mayQueue: boolean;
}

/** Finds replicas for one invocation, and skips replicas that were tried. */
class Search {
  readonly #caller: Caller;
  readonly #modelId: Invocation["modelId"];
  readonly #tried: Set<string>;
  readonly #without: ReadonlySet<string>;
  /** Replicas that had no free slot for this request. */
  readonly #full = new Set<string>();
  #failure: Failure | undefined;
  #broken = 0;
  #mayBeStale = true;
  /** The replica to try again, because the connection to it was stale. */
  #again: FoundReplica | undefined;
  #deadlineMs: number | undefined;

  constructor(caller: Caller, { modelId, speaker }: Invocation, after: CallContext["after"]) {
    this.#caller = caller;
    this.#modelId = modelId;
    this.#tried = new Set(after && [after.replica]);
    this.#without = caller.replicasWithout(speaker);
    this.#failure = after?.failure;
    if (after?.failure.code === "model_failed") this.#broken++;
  }

  /** Failure of the last attempt. */
  get failure(): Failure | undefined {
    return this.#failure;
  }

  /** Whether another replica may be tried, and may succeed. */
  get mayGoOn(): boolean {
    return this.#broken < mostBroken && (!this.#failure || isWorthAnotherReplica(this.#failure));
  }

  /** Returns the next replica, and waits for a replica if the pool is starting. Undefined if no replica is left. */
  async next(signal: AbortSignal): Promise<FoundReplica | undefined> {
    if (this.#tried.size >= maxAttempts) return undefined;
    const found = this.#again ?? this.#find();
    if (found || (this.#failure && !mayBeGone(this.#failure))) return found;
    const { requestHold } = this.#caller;
    this.#deadlineMs ??= requestHold.deadline();
    const until = { deadlineMs: this.#deadlineMs, signal };
    const isStarted = await requestHold.wait(this.#modelId, () => this.#choose() !== undefined, until);
    return isStarted ? this.#find() : undefined;
  }

  /**
   * Records that a replica failed before its first audio. A stale connection is no failure of the replica, so the
   * same replica is tried once more.
   */
  failed(found: FoundReplica, error: unknown, signal: AbortSignal) {
    const { replica, mayQueue } = found;
    const failure = asFailure(error, signal);
    const isStale = this.#mayBeStale && isStaleConnection(error);
    if (!isStale) {
      const isFull = !mayQueue && failure.code === "saturated";
      (isFull ? this.#full : this.#tried).add(replica.url);
      if (failure.code === "model_failed") this.#broken++;
    }
    this.#again = isStale ? found : undefined;
    this.#mayBeStale = false;
    this.#failure = failure;
    return { failure, isStale };
  }

  /** Returns a replica that may have a free slot, otherwise a replica that may queue the request. */
  #find(): FoundReplica | undefined {
    return this.#withFreeSlot() ?? this.#toQueueAt();
  }

  /**
   * Returns a replica that may have a free slot. A replica may queue the request if it is the only candidate.
   * Undefined if too many replicas reported that they are full.
   */
  #withFreeSlot(): FoundReplica | undefined {
    if (this.#full.size >= mostFull) return undefined;
    const replica = this.#choose(this.#full);
    const isOnly = this.#full.size === 0 && replica && !this.#choose(new Set([replica.url]));
    return replica && { replica, mayQueue: isOnly === true };
  }

  #toQueueAt(): FoundReplica | undefined {
    const replica = this.#choose();
    return replica && { replica, mayQueue: true };
  }

  #choose(without: ReadonlySet<string> = new Set()): Replica | undefined {
    const { chooser } = this.#caller;
    return chooser.choose(this.#modelId, new Set([...this.#tried, ...this.#without, ...without]));
  }
}

/** Whether the replica is stopping. A new replica may be starting at the same time. */
function mayBeGone({ code }: Failure): boolean {
  return code === "draining" || code === "model_unreachable";
}

function unreachable({ modelId }: Invocation): Failure {
  return new Failure(
    "model_unreachable",
    `No replica of ${modelId} accepts requests now; try again in a moment.`,
    { retryAfterSeconds: 2 },
  );
}

/**
 * Whether the replica closed a kept-alive connection while the request was written. This is no failure of the
 * replica.
 */
function isStaleConnection(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === "UND_ERR_SOCKET" || code === "ECONNRESET" || code === "EPIPE";
}

/** Whether another replica may succeed. An invalid request fails on every replica. */
export function isWorthAnotherReplica({ code }: Failure): boolean {
  return ["model_failed", "model_unreachable", "saturated", "draining"].includes(code);
}

function asFailure(error: unknown, signal: AbortSignal): Failure {
  if (error instanceof Failure) return error;
  const code = (error as { code?: unknown }).code;
  if (!signal.aborted && isTimeout(error, code)) {
    return new Failure("deadline_exceeded", "The model sent no audio in time; try again.", { cause: error });
  }
  const isUnreachable = code === "ECONNREFUSED" || code === "UND_ERR_CONNECT_TIMEOUT" || code === "ENOTFOUND";
  return isUnreachable
    ? new Failure("model_unreachable", "The model does not respond; try again in a moment.", {
        retryAfterSeconds: 2,
        cause: error,
      })
    : new Failure("model_failed", "The model failed before its first audio; send the request again.", {
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

/**
 * The reason of every abort. Every stream ends with an abort, and the default reason would capture a stack trace
 * each time.
 */
const streamEnded = new Error("the stream ended, or the client disconnected");

async function speakOn(
  caller: Caller,
  { replica, mayQueue, stream }: FoundReplica & { readonly stream: PoolStream },
  invocation: Invocation,
  context: CallContext,
): Promise<SynthesisStream> {
  const releases = [caller.chooser.occupy(replica), caller.load.occupy(replica)];
  const stop = new AbortController();
  const span = context.span.child("POST /invocations", replicaAttributes(replica), "client");
  const close = () => {
    stop.abort(streamEnded);
    span.end();
    context.signal.removeEventListener("abort", close);
    for (const release of releases) release();
  };
  context.signal.addEventListener("abort", close, { once: true });
  const cancelDeadline = caller.clock.after(caller.firstAudioTimeoutMs, () =>
    stop.abort(new DOMException("no audio in time", "TimeoutError")),
  );
  try {
    context.signal.throwIfAborted();
    const { requestId, caller: callerId, onOovs } = context;
    const onLoad = (report: LoadReport) => caller.chooser.reported(replica, report);
    const call = {
      requestId,
      caller: callerId,
      signal: stop.signal,
      mayQueue,
      onLoad,
      traceHeaders: span.headers,
    };
    const target = { agent: caller.agent, url: replica.url, secret: caller.token() };
    const body = await invoke({ ...target, ...call }, invocation);
    const speech = await awaitFirstAudio(body, onOovs, stream);
    caller.load.firstAudio(replica.pool, stream.firstAudio());
    const leave = () => {
      stream.left();
      close();
    };
    return { ...speech, replica: replica.url, close: leave };
  } catch (error) {
    span.end(asFailure(error, context.signal).code);
    close();
    throw error;
  } finally {
    cancelDeadline();
  }
}

function replicaAttributes({ url, pool }: Replica): Attributes {
  return { "url.full": `${url}/invocations`, "svc.pool": pool, "http.request.method": "POST" };
}
