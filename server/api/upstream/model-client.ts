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

/** Speech from a model tier, which is pulled, never pushed. */
export interface SynthesisStream extends StartedSpeech {
  /** Base URL of the replica. */
  readonly replica: string;
  /** Stops the synthesis and frees its replica. It may be called at any time and more than once. */
  close(): void;
}

export interface CallContext {
  readonly requestId: string;
  /** ID of the client's key, because model tiers serve keys in turn. */
  readonly caller: string;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** Span of the request. Each call of a replica is a part of it. */
  readonly span: Span;
  /** Called with out-of-vocabulary words of the text. */
  readonly onOovs?: (words: readonly string[]) => void;
  /** The replica that failed after its first audio, and its failure. It is not tried again. */
  readonly after?: { readonly replica: string; readonly failure: Failure };
  /** Called for each replica that is tried, with the failure of the one before. */
  readonly onAttempt: (failed: ErrorCode | undefined) => void;
}

export interface ModelClientOptions {
  readonly chooser: ReplicaSelector;
  readonly load: Pick<LoadTracker, "occupy" | "firstAudio">;
  readonly requestHold: RequestHold;
  /** Called for each finished stream of a replica. */
  readonly onPoolStream: (facts: PoolStreamFacts) => void;
  /** Base URLs of the replicas without a voice. */
  readonly replicasWithout: (voiceId: string) => ReadonlySet<string>;
  /** The current internal token. Undefined while there is none. */
  readonly token: () => string | undefined;
  /** Longest wait for the first audio. */
  readonly firstAudioTimeoutMs: number;
  /** Longest pause of a model between two pieces of its stream. */
  readonly stallTimeoutMs: number;
  readonly clock: Clock;
}

export interface ModelClient {
  /**
   * Starts a synthesis. Resolves with the first audio. Failures before it are retried on another replica.
   * @throws Failure for the client.
   */
  speak(invocation: Invocation, context: CallContext): Promise<SynthesisStream>;
  close(): Promise<void>;
}

/** Replicas that are tried for one request. */
const maxAttempts = 3;
/**
 * Replicas that may fail for one request, because a text that crashes engines would stop one after the other.
 */
const mostBroken = 2;
/** Replicas that may report that they are full before the request waits at one. */
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
  /** No other replica has a free slot, so the request waits there. */
  readonly mayQueue: boolean;
}

/** Base URLs of replicas that can serve the invocation and were not tried. */
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
  /** Its connection was stale. */
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

  /** Failure of the last tried replica. */
  get failure(): Failure | undefined {
    return this.#failure;
  }

  /** Whether another replica may succeed, and may be tried. */
  get mayGoOn(): boolean {
    return this.#broken < mostBroken && (!this.#failure || isWorthAnotherReplica(this.#failure));
  }

  /** Returns the next replica, and waits for one if the pool is starting. Undefined if none is left. */
  async next(signal: AbortSignal): Promise<FoundReplica | undefined> {
    if (this.#tried.size >= maxAttempts) return undefined;
    const found = this.#again ?? this.#find();
    if (found || (this.#failure && !mayBeGone(this.#failure))) return found;
    const { requestHold } = this.#caller;
    this.#deadlineMs ??= requestHold.deadline();
    const until = { deadlineMs: this.#deadlineMs, signal };
    const came = await requestHold.wait(this.#modelId, () => this.#choose() !== undefined, until);
    return came ? this.#find() : undefined;
  }

  /**
   * A replica failed before its first audio. A stale connection is not the replica's failure, so it is tried
   * once more.
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

  /** Returns a replica that may have a free slot, or else a replica in whose queue the request may wait. */
  #find(): FoundReplica | undefined {
    return this.#withRoom() ?? this.#toQueueAt();
  }

  /** A replica that may have a free slot, while another one is left to try. */
  #withRoom(): FoundReplica | undefined {
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

/** The tried replica is stopping, and another one may be starting in its place. */
function mayBeGone({ code }: Failure): boolean {
  return code === "draining" || code === "model_unreachable";
}

function unreachable({ modelId }: Invocation): Failure {
  return new Failure(
    "model_unreachable",
    `No replica of ${modelId} takes requests now; try again in a moment.`,
    { retryAfterSeconds: 2 },
  );
}

/**
 * The other side closed a kept-alive connection during the write. This is not the replica's failure, so it is
 * tried once more.
 */
function isStaleConnection(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === "UND_ERR_SOCKET" || code === "ECONNRESET" || code === "EPIPE";
}

/** Failures that another replica may not have. An invalid request stays invalid. */
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
 * One error for all, because the default reason of an abort captures the stack each time, and every stream
 * ends with one.
 */
const streamEnded = new Error("the stream ended, or the client disconnected");

async function speakOn(
  caller: Caller,
  { replica, mayQueue, stream }: FoundReplica & { readonly stream: PoolStream },
  invocation: Invocation,
  context: CallContext,
): Promise<SynthesisStream> {
  const places = [caller.chooser.occupy(replica), caller.load.occupy(replica)];
  const stop = new AbortController();
  const span = context.span.child("POST /invocations", replicaAttributes(replica), "client");
  const close = () => {
    stop.abort(streamEnded);
    span.end();
    context.signal.removeEventListener("abort", close);
    for (const free of places) free();
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
