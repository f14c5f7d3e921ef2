import { randomUUID } from "node:crypto";
import type { AddressInfo } from "node:net";
import { availableParallelism } from "node:os";
import { Readable } from "node:stream";
import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
  type RawRequestDefaultExpression,
} from "fastify";
import type { Tier } from "../../config/contract/models.ts";
import { type EngineLog, EngineMissing } from "../engine/engine.ts";
import { Engines } from "../engine/engines.ts";
import { Failure, toProblem } from "../errors.ts";
import { wireType } from "../wire.ts";
import { AcceptedTokens, type TokenSource } from "./access.ts";
import { Admission } from "./admission.ts";
import { readInvocation } from "./invocation.ts";
import { TierMetrics } from "./metrics.ts";
import { orcaHeader, orcaReport } from "./orca.ts";
import { asFailure, prepareSpeech, startSpeech } from "./synthesis.ts";
import { warmUp } from "./warm-up.ts";

export interface ModelTierOptions {
  readonly tier: Tier;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Tokens that API tiers must send to `/invocations`. */
  readonly tokens: TokenSource;
  readonly maxConcurrentStreams: number;
  /** How long running streams may take to finish after `stop`. */
  readonly drainSeconds: number;
  /** As pino names it: `info`, `warn`, `silent`… */
  readonly logLevel: string;
  /** Engine processes of each kind; as many as the machine has cores unless given. */
  readonly engineProcesses?: number;
  /** Longest wait for a stream; 5 s unless given. */
  readonly queueDeadlineMs?: number;
}

export interface RunningTier {
  readonly url: string;
  /** Resolves once a phrase has been spoken by every engine that this machine has; rejects when none can. */
  readonly warmed: Promise<void>;
  /** Takes no more requests, lets running streams finish up to `drainSeconds`, and closes. */
  stop(): Promise<void>;
}

/** arcana takes texts of any length; the API tier bounds what its callers may send. */
const maxBodyBytes = 64 * 1024 * 1024;
const defaultQueueDeadlineMs = 5_000;

type TierState = "starting" | "serving" | "draining";

/** Starts a model tier: it listens at once, and is ready when its engines have spoken. */
export async function startModelTier(options: ModelTierOptions): Promise<RunningTier> {
  const app = Fastify({
    logger: { level: options.logLevel, name: options.tier },
    bodyLimit: maxBodyBytes,
    genReqId: requestId,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: "requestId" }),
    forceCloseConnections: true,
  });
  const tier = new ModelTier(options, app);
  tier.addRoutes();
  await app.listen({ host: options.host, port: options.port });
  const { port } = app.server.address() as AddressInfo;
  return {
    url: `http://${options.host}:${port}`,
    warmed: tier.openEngines(),
    stop: () => tier.stop(),
  };
}

class ModelTier {
  readonly #options: ModelTierOptions;
  readonly #app: FastifyInstance;
  readonly #admission: Admission;
  readonly #metrics: TierMetrics;
  readonly #tokens: AcceptedTokens;
  readonly #stopping = new AbortController();
  #engines: Engines | undefined;
  #opening: Promise<void> | undefined;
  #state: TierState = "starting";

  constructor(options: ModelTierOptions, app: FastifyInstance) {
    this.#options = options;
    this.#app = app;
    this.#admission = new Admission({
      maxStreams: options.maxConcurrentStreams,
      maxQueued: options.maxConcurrentStreams,
      deadlineMs: options.queueDeadlineMs ?? defaultQueueDeadlineMs,
    });
    this.#metrics = new TierMetrics(this.#admission);
    this.#tokens = new AcceptedTokens(options.tokens, (error) =>
      app.log.error({ err: error }, "the accepted tokens cannot be read; every request is refused"),
    );
  }

  /** @throws EngineMissing when no engine is installed, Failure when one makes no audio; this tier stays not ready. */
  openEngines(): Promise<void> {
    this.#opening = this.#openEngines();
    this.#opening.catch((error) => this.#app.log.error({ err: error }, "this tier cannot speak"));
    return this.#opening;
  }

  async #openEngines(): Promise<void> {
    const engines = await Engines.open({
      processes: this.#options.engineProcesses ?? availableParallelism(),
      log: this.#app.log satisfies EngineLog,
    });
    this.#engines = engines;
    if (engines.all().length === 0) throw new EngineMissing(engines.missing.join("\n"));
    await warmUp(engines, this.#stopping.signal);
    if (this.#state === "starting") this.#state = "serving";
    this.#app.log.info({ engines: engines.all().map(({ name }) => name) }, "ready to speak");
  }

  async stop(): Promise<void> {
    if (this.#state === "draining") return;
    this.#state = "draining";
    this.#app.log.info({ streams: this.#admission.speaking }, "draining");
    const timer = setTimeout(() => this.#stopping.abort(draining()), this.#options.drainSeconds * 1000);
    await this.#admission.idle();
    clearTimeout(timer);
    this.#stopping.abort(draining());
    await this.#app.close();
    await this.#opening?.catch(() => undefined); // its failure is with whoever awaits `warmed`
    await this.#engines?.close();
  }

  addRoutes(): void {
    this.#addProbes();
    this.#app.get("/metrics", async (_request, reply) => {
      const { contentType, body } = await this.#metrics.text();
      return reply.type(contentType).send(body);
    });
    this.#app.post("/invocations", (request, reply) => this.#invoke(request, reply));
    this.#app.addHook("onResponse", async (request, reply) => {
      this.#metrics.countRequest(answered(request, reply));
    });
    this.#app.setErrorHandler((error, request, reply) => this.#fail(error, request, reply));
    this.#app.setNotFoundHandler(() => {
      throw new Failure("not_found", "A model tier has /invocations, /ping, /readyz, /ready and /metrics.");
    });
  }

  /** `/ping` and `/readyz` are liveness: yes once warmed, also while an engine restarts within its budget. */
  #addProbes(): void {
    const alive = (word: string) => async (_request: FastifyRequest, reply: FastifyReply) => {
      const yes = this.#state !== "starting" && this.#engines?.healthy();
      return reply
        .code(yes ? 200 : 503)
        .type("text/plain")
        .send(yes ? word : this.#whyNotAlive());
    };
    this.#app.get("/ping", alive("pong"));
    this.#app.get("/readyz", alive("ok"));
    this.#app.get("/ready", async (_request, reply) => {
      const yes = this.#state === "serving" && this.#engines?.healthy();
      return reply
        .code(yes ? 200 : 503)
        .type("text/plain")
        .send(yes ? "ready" : this.#whyNotReady());
    });
  }

  #whyNotAlive(): string {
    if (this.#engines && this.#engines.all().length === 0) return this.#engines.missing.join("\n");
    return this.#state === "starting" ? "the engines are starting" : "a speech engine keeps dying";
  }

  #whyNotReady(): string {
    return this.#state === "draining" ? "draining" : this.#whyNotAlive();
  }

  async #invoke(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    if (!(await this.#tokens.accepts(request.headers.authorization))) {
      reply.header("www-authenticate", "Bearer");
      throw new Failure("unauthorized", "Send the deployment's internal token as a bearer token.");
    }
    const engines = this.#servingEngines();
    const { invocation, voice } = readInvocation(request.body, this.#options.tier);
    const speech = prepareSpeech(invocation, voice, engines);
    const arrivedAt = performance.now();
    const signal = AbortSignal.any([this.#stopping.signal, closed(reply)]);
    const release = await this.#admission.enter(signal);
    if (!release) return this.#giveUp(reply);
    // the place is free again when the last byte is with the caller, or the caller is gone
    if (reply.raw.closed) release();
    else reply.raw.once("close", release);
    this.#metrics.waited(secondsSince(arrivedAt));
    const bytes = await startSpeech(speech, signal, (failure) =>
      this.#report(failure, request, answered(request, reply)),
    );
    if (!bytes) return this.#giveUp(reply);
    this.#metrics.firstAudio(invocation.modelId, secondsSince(arrivedAt));
    const body = Readable.from(bytes, { objectMode: false, highWaterMark: 16 * 1024 });
    return reply.type(wireType).header(orcaHeader, orcaReport(this.#admission)).send(body);
  }

  /** The wait ended without a turn: this replica stops, or nobody is there to answer. */
  #giveUp(reply: FastifyReply): FastifyReply {
    if (this.#stopping.signal.aborted) throw this.#stopping.signal.reason;
    return reply.hijack();
  }

  #servingEngines(): Engines {
    if (this.#state === "draining") {
      throw draining();
    }
    if (this.#state === "starting" || !this.#engines) {
      throw new Failure("model_unreachable", "The speech engines are starting; try again in a moment.", {
        retryAfterSeconds: 2,
      });
    }
    return this.#engines;
  }

  #fail(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    if (reply.raw.closed) return reply.hijack(); // the caller is gone: nobody to answer, and nothing failed
    const failure = fromFastify(error) ?? asFailure(error);
    this.#report(failure, request, { ...answered(request, reply), status: failure.status });
    if (failure.retryAfterSeconds !== undefined) {
      reply.header("retry-after", String(failure.retryAfterSeconds));
    }
    return reply
      .code(failure.status)
      .type("application/problem+json")
      .header(orcaHeader, orcaReport(this.#admission))
      .send(toProblem(failure, request.id));
  }

  #report(failure: Failure, request: FastifyRequest, answer: ReturnType<typeof answered>): void {
    this.#metrics.countError(answer, failure.code);
    const level = failure.status >= 500 && failure.code !== "saturated" ? "error" : "info";
    request.log[level](
      { code: failure.code, err: level === "error" ? failure : undefined },
      "request failed",
    );
  }
}

/** The API tier's id of the request, when it is of a sane form; else one of our own. */
function requestId({ headers }: RawRequestDefaultExpression): string {
  const given = headers["x-request-id"];
  return typeof given === "string" && /^[\w.:-]{1,128}$/.test(given) ? given : randomUUID();
}

function answered(request: FastifyRequest, reply: FastifyReply) {
  return { endpoint: request.routeOptions.url, method: request.method, status: reply.statusCode };
}

function draining(): Failure {
  return new Failure("draining", "This replica is shutting down; send the request again.", {
    retryAfterSeconds: 1,
  });
}

/** Aborts when the caller hangs up. */
function closed(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once("close", () => gone.abort());
  return gone.signal;
}

function secondsSince(startMs: number): number {
  return (performance.now() - startMs) / 1000;
}

/** Fastify's own complaints about a request, in our words. */
function fromFastify(error: unknown): Failure | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  switch (code) {
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return new Failure("unsupported_media_type", "Send the body as application/json.", { cause: error });
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return new Failure("body_too_large", `The body may have ${maxBodyBytes} bytes.`, { cause: error });
    case "FST_ERR_CTP_INVALID_JSON_BODY":
    case "FST_ERR_CTP_EMPTY_JSON_BODY":
      return new Failure("malformed_json", "Send one JSON object.", { cause: error });
    default:
      return undefined;
  }
}
