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

/** The speech of a model tier. The reader pulls the frames, so that a slow client slows the model. */
export interface SynthesisStream extends StartedSpeech {
  /** The base URL of the replica. */
  readonly replica: string;
  /** Stops the synthesis and frees the replica. Further calls have no effect. */
  close(): void;
}

export interface CallContext {
  readonly requestId: string;
  /** The ID of the client's API key, for the fair queue of the model tier. */
  readonly caller: string;
  /** This signal aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** The span of the request. Each invocation of a replica has a child span. */
  readonly span: Span;
  /** The client calls this function with the out-of-vocabulary words of the text. */
  readonly onOovs?: (words: readonly string[]) => void;
  /**
   * A replica that failed after its first audio, and its failure. The client does not select this replica
   * again.
   */
  readonly after?: { readonly replica: string; readonly failure: Failure };
  /** The client calls this function before each attempt, with the error code of the previous attempt. */
  readonly onAttempt: (failed: ErrorCode | undefined) => void;
}

export interface ModelClientOptions {
  readonly chooser: ReplicaSelector;
  readonly load: Pick<LoadTracker, "occupy" | "firstAudio">;
  readonly requestHold: RequestHold;
  /** The client calls this function for each finished stream of a replica. */
  readonly onPoolStream: (facts: PoolStreamFacts) => void;
  /** Returns the base URLs of the replicas that do not have this voice. */
  readonly replicasWithout: (voiceId: string) => ReadonlySet<string>;
  /** Returns the current internal token, or undefined if no token is configured. */
  readonly token: () => string | undefined;
  /** The longest wait for the first audio. */
  readonly firstAudioTimeoutMs: number;
  /** The longest pause of a model between two pieces of its stream. */
  readonly stallTimeoutMs: number;
  readonly clock: Clock;
}

export interface ModelClient {
  /**
   * Starts a synthesis, and waits for the first audio. If a replica fails before its first audio, the client
   * retries the synthesis on another replica.
   * @throws Failure with a message for the client.
   */
  speak(invocation: Invocation, context: CallContext): Promise<SynthesisStream>;
  close(): Promise<void>;
}

/** The highest number of replicas that may fail, or reject a request that they could have queued. */
const maxAttempts = 3;
/**
 * The highest number of replicas on which one request may fail with `model_failed`. A text that crashes
 * engines must not reach every replica.
 */
const mostBroken = 2;
/**
 * The highest number of full replicas that may reject a request before the request waits in the queue of a
 * replica.
 */
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
  /**
   * Whether the request may wait in the queue of the replica, because no other replica is known to have a
   * free slot.
   */
  readonly mayQueue: boolean;
}

/** Finds replicas for one invocation, and skips replicas that were tried. */
class Search {
  readonly #caller: Caller;
  readonly #modelId: Invocation["modelId"];
  readonly #tried: Set<string>;
  readonly #without: ReadonlySet<string>;
  /** The replicas that had no free slot for this request. */
  readonly #full = new Set<string>();
  #failure: Failure | undefined;
  #broken = 0;
  #mayBeStale = true;
  /** The replica that is tried again, because its connection was stale. */
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

  /** The failure of the last attempt. */
  get failure(): Failure | undefined {
    return this.#failure;
  }

  /** Whether a further attempt is allowed, and may succeed. */
  get mayGoOn(): boolean {
    return this.#broken < mostBroken && (!this.#failure || isWorthAnotherReplica(this.#failure));
  }

  /**
   * Returns the next replica, and waits for a replica if the pool is starting. The result is undefined if no
   * replica is left.
   */
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
   * Records that a replica failed before its first audio. After a stale connection, the next attempt uses the
   * same replica again, because the replica itself did not fail.
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
   * Returns a replica that may have a free slot. A replica that is the only candidate may queue the request.
   * The result is undefined if too many replicas were full.
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

/** Returns whether the replica may have been deleted. In this case a new replica may be starting. */
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
 * Returns whether the replica may have closed a kept-alive connection while this process wrote the request.
 */
function isStaleConnection(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === "UND_ERR_SOCKET" || code === "ECONNRESET" || code === "EPIPE";
}

/** Returns whether another replica may succeed. An invalid request fails on every replica. */
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
 * The reason of every abort. Every stream ends with an abort, and the default reason captures a stack trace
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
