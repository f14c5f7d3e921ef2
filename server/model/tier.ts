import { randomUUID } from "node:crypto";
import type { AddressInfo, Socket } from "node:net";
import { availableParallelism } from "node:os";
import { Readable } from "node:stream";
import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
  type RawRequestDefaultExpression,
} from "fastify";
import { type ArcanaEngineName, modelsOfKind } from "../../config/contract/models.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { Failure } from "../contract/errors.ts";
import type { Invocation } from "../contract/speech.ts";
import { callerHeader, noQueueHeader, orcaHeader, wireType } from "../contract/wire.ts";
import {
  Engines,
  isMounted,
  type KnownVoice,
  type MountSettings,
  type VoiceEngine,
} from "../engine/engines.ts";
import { type EngineLog, EngineMissing } from "../engine/runtime/engine.ts";
import { OpenResponses } from "../http/open-responses.ts";
import { SendQueueReader, watchUnsentBytes } from "../http/send-queues.ts";
import { startTelemetry } from "../telemetry/start.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Span, Tracing } from "../tracing/span.ts";
import { startTracing } from "../tracing/start.ts";
import { AcceptedRequests } from "./accepted-requests.ts";
import { AcceptedTokens } from "./access.ts";
import { logInvocations } from "./access-log.ts";
import { Admission } from "./admission.ts";
import { EngineAdmission } from "./engine-admission.ts";
import { readInvocation } from "./invocation.ts";
import { TierMetrics } from "./metrics.ts";
import { OovCollector } from "./oov-collector.ts";
import { orcaReport } from "./orca.ts";
import { addProbes, type TierState } from "./probes.ts";
import { answerFailures, draining, maxBodyBytes, reportFailure } from "./problems.ts";
import type { ModelTierOptions } from "./settings.ts";
import type { SpeechJob } from "./speak.ts";
import {
  asFailure,
  checkSpeech,
  prepareSpeech,
  startSpeech,
  textOptions,
  unsupportedOptions,
} from "./synthesis.ts";
import { traced } from "./traced-engine.ts";
import { Vocabulary } from "./vocabulary/vocabulary.ts";
import { reportVoices } from "./voice-report.ts";
import { warmUpEngines } from "./warm-up.ts";

export interface RunningTier {
  readonly url: string;
  /** Resolves when every engine has synthesized a phrase. Rejects if no engine works. */
  readonly warmed: Promise<void>;
  /**
   * Rejects new requests, serves accepted and queued requests for up to `drainSeconds`, and closes the tier.
   */
  stop(): Promise<void>;
}

const defaultQueueDeadlineMs = 5_000;
const maxCallerLength = 200;
/** The time after the end of the drain in which clients may receive the errors of the interrupted streams. */
const lastFramesMs = 1_000;

/** The response to invalid HTTP. The response has no body, because only API tiers call a model tier. */
const malformed = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/**
 * Starts a model tier. The tier listens immediately, and becomes ready when its engines have synthesized a
 * phrase.
 */
export async function startModelTier(options: ModelTierOptions): Promise<RunningTier> {
  const app = Fastify({
    logger: { level: options.logLevel, name: options.tier },
    bodyLimit: maxBodyBytes,
    genReqId: requestId,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: "requestId" }),
    forceCloseConnections: true,
    clientErrorHandler: (_error, socket) => {
      if (socket.writable) openResponses.refuse(socket as Socket, malformed);
      else socket.destroy();
    },
  });
  const openResponses = new OpenResponses(app.server);
  const clock = options.clock ?? systemClock;
  const tracing = await startTracing(options.tracing, app.log, clock);
  const telemetry = await startTelemetry(options.telemetry, app.log, clock);
  const tier = new ModelTier(options, app, tracing, telemetry);
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
  readonly #clock: Clock;
  readonly #tracing: Tracing;
  readonly #telemetry: Telemetry;
  readonly #admission: Admission;
  readonly #engineAdmission: EngineAdmission;
  readonly #accepted = new AcceptedRequests();
  readonly #metrics: TierMetrics;
  readonly #tokens: AcceptedTokens;
  readonly #vocabulary: Vocabulary;
  readonly #stopping = new AbortController();
  #engines: Engines | undefined;
  #opening: Promise<void> | undefined;
  #state: TierState = "starting";

  constructor(options: ModelTierOptions, app: FastifyInstance, tracing: Tracing, telemetry: Telemetry) {
    this.#tracing = tracing;
    this.#telemetry = telemetry;
    this.#options = options;
    this.#app = app;
    this.#clock = options.clock ?? systemClock;
    const { maxConcurrentStreams: maxStreams, queueDeadlineMs: deadlineMs = defaultQueueDeadlineMs } =
      options;
    this.#admission = new Admission({ maxStreams, maxQueued: maxStreams, deadlineMs }, this.#clock);
    this.#engineAdmission = new EngineAdmission(deadlineMs, this.#clock);
    this.#metrics = new TierMetrics(
      options.tier,
      this.#admission,
      () => this.#engines?.all() ?? [],
      () => this.#engines?.mounted,
      this.#engineAdmission,
      telemetry,
    );
    this.#vocabulary = new Vocabulary({ folder: options.dictionaryFolder, log: app.log });
    this.#tokens = new AcceptedTokens(options.tokens, (error) =>
      app.log.error({ err: error }, "the accepted internal tokens cannot be read; every request is rejected"),
    );
  }

  /**
   * Opens the engines. If the call fails, the tier never becomes ready.
   * @throws EngineMissing if no engine is installed; Failure if an engine returns no audio.
   */
  openEngines(): Promise<void> {
    this.#opening = this.#openEngines();
    this.#opening.catch((error) =>
      this.#app.log.error({ err: error }, "the engines could not be started; the tier is not ready"),
    );
    return this.#opening;
  }

  async #openEngines(): Promise<void> {
    const processes = this.#options.engineProcesses ?? availableParallelism();
    const engines = await Engines.open(
      {
        processes,
        log: this.#app.log satisfies EngineLog,
        generator: this.#generator(),
        model: this.#model(),
      },
      this.#mountSettings(),
    );
    this.#engines = engines;
    if (engines.all().length === 0) throw new EngineMissing(engines.missing.join("\n"));
    this.#admission.lowerTo(engines.realTimeStreams);
    await warmUpEngines(engines, this.#stopping.signal);
    if (this.#state === "starting") this.#state = "serving";
    this.#app.log.info(
      { engines: engines.all().map(({ name }) => name) },
      "the tier is ready to synthesize speech",
    );
  }

  #generator(): ArcanaEngineName | undefined {
    return this.#options.tier === "arcana" ? (this.#options.generator ?? "mini") : undefined;
  }

  #model() {
    const { model, maxConcurrentStreams, host } = this.#options;
    if (this.#generator() !== "vllm") return undefined;
    if (!model) throw new Error("the generator vllm needs a model; set GENERATOR_MODEL_DIR to its folder");
    return { ...model, maxStreams: maxConcurrentStreams, host };
  }

  #mountSettings(): MountSettings | undefined {
    const { voices, tier } = this.#options;
    if (!voices) return undefined;
    return {
      folder: voices.folder,
      installed: voices.installed,
      except: voices.except,
      models: modelsOfKind(tier),
      cores: availableParallelism(),
      processes: voices.processes,
      streams: voices.streams,
      naturalModels: voices.naturalModels,
      providers: voices.providers,
      intervalMs: voices.intervalMs ?? 1_000,
    };
  }

  async stop(): Promise<void> {
    if (this.#state === "draining") return;
    this.#state = "draining";
    this.#app.log.info({ streams: this.#admission.speaking }, "the tier drains its running streams");
    const drainMs = this.#options.drainSeconds * 1000;
    const end = this.#clock.monotonicMs() + drainMs;
    const unsent = watchUnsentBytes([this.#app.server], new SendQueueReader(this.#app.log), this.#clock);
    const cut = Promise.withResolvers<void>();
    const cancels = [
      this.#clock.after(drainMs, () => this.#stopping.abort(draining())),
      // A client that reads no data does not receive the error of its stream, and would delay the stop.
      this.#clock.after(drainMs + lastFramesMs, () => cut.resolve()),
    ];
    await Promise.race([this.#accepted.idle(), cut.promise]);
    for (const cancel of cancels) cancel();
    this.#stopping.abort(draining());
    await this.#app.close();
    await unsent.gone(end);
    await this.#opening?.catch(() => undefined); // `warmed` reports this failure.
    await this.#engines?.close();
    await Promise.all([this.#tracing.stop(), this.#telemetry.stop()]);
    await this.#vocabulary.close();
  }

  addRoutes(): void {
    logInvocations(this.#app, this.#metrics, this.#tracing);
    addProbes(this.#app, { state: () => this.#state, engines: () => this.#engines });
    this.#app.get("/metrics", async (request, reply) => {
      const { contentType, text } = await this.#metrics.exposition(request.headers.accept);
      return reply.type(contentType).send(text);
    });
    this.#app.get("/voices", async () => reportVoices(this.#engines, this.#options.tier));
    this.#app.post(
      "/invocations",
      { onRequest: (request, reply) => this.#requireToken(request, reply) },
      (request, reply) => this.#invoke(request, reply),
    );
    this.#app.setErrorHandler(answerFailures(this.#admission));
    this.#app.setNotFoundHandler(() => {
      throw new Failure(
        "not_found",
        "A model tier serves /invocations, /voices, /ping, /readyz, /ready and /metrics.",
      );
    });
  }

  /**
   * Checks the internal token before the body is read, so that a request without a token cannot occupy
   * memory.
   */
  async #requireToken(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (await this.#tokens.accepts(request.headers.authorization)) return;
    void reply.header("www-authenticate", "Bearer");
    throw new Failure("unauthorized", "Send the deployment's internal token as a bearer token.");
  }

  async #invoke(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    this.#metrics.invoked();
    const engines = this.#servingEngines();
    const disconnected = closed(reply, this.#accepted.add());
    const { invocation, voice } = readInvocation(request.body, this.#options.tier, (id) =>
      engines.findVoice(id),
    );
    await checkSpeech(invocation);
    const speech = prepareSpeech(invocation, this.#selectSpeaker(voice, invocation));
    whenClosed(reply, () => speech.speaker.release());
    const arrivedAt = performance.now();
    const signal = AbortSignal.any([this.#stopping.signal, disconnected]);
    const engineAdmission = this.#engineAdmission.of(speech.speaker);
    const releaseEngine = await this.#enter(request, signal, engineAdmission);
    if (!releaseEngine) return this.#endWithoutSpeech(reply);
    if (engineAdmission) whenClosed(reply, releaseEngine);
    const release = await this.#enter(request, signal, this.#admission);
    if (!release) return this.#endWithoutSpeech(reply);
    // The slot is released when the client has received the last byte or has disconnected.
    const end = this.#metrics.began(secondsSince(arrivedAt));
    whenClosed(reply, () => {
      release();
      end();
    });
    const progress = { samples: 0, workMs: 0 };
    const { name: engine, rate } = speech.speaker.engine;
    const span = request.span.child("synthesis", { "svc.model": invocation.modelId, "svc.voice": voice.id });
    request.invoked = { model: invocation.modelId, voice: voice.id, engine, rate, progress, span };
    const bytes = await startSpeech(inSpan(speech, span), signal, {
      progress,
      ...(invocation.saveOovs && { findWords: () => this.#findWords(invocation) }),
      onSpoken: releaseEngine,
      onFailure: (failure) => reportFailure(failure, request),
    });
    if (!bytes) return this.#endWithoutSpeech(reply);
    this.#metrics.firstAudio(invocation.modelId, secondsSince(arrivedAt));
    const body = Readable.from(bytes, { objectMode: false, highWaterMark: 16 * 1024 });
    return reply.type(wireType).header(orcaHeader, orcaReport(this.#admission)).send(body);
  }

  #findWords(invocation: Invocation): OovCollector {
    return new OovCollector(this.#vocabulary.unknownWords(invocation.text, textOptions(invocation)));
  }

  /**
   * Selects the speaker of a voice. If the deployment allows it, the built-in engine replaces a mounted model
   * that is at capacity. A request that the mounted model would reject is also rejected at capacity, so that
   * the response does not depend on the load.
   */
  #selectSpeaker(voice: KnownVoice, invocation: Invocation): VoiceEngine {
    const engines = this.#servingEngines();
    const speaker = engines.speakerFor(voice, invocation.modelId);
    const mayFallBack = this.#options.voices?.fallsBack === true && !isMounted(voice);
    const isRejected = unsupportedOptions(invocation, speaker).length > 0;
    if (!mayFallBack || isRejected || this.#engineAdmission.hasRoom(speaker)) return speaker;
    speaker.release();
    return engines.builtInSpeakerFor(voice);
  }

  /**
   * Waits for a slot. The promise resolves with undefined if the signal aborts first.
   * @param admission undefined if the number of streams is not limited.
   */
  async #enter(
    request: FastifyRequest,
    signal: AbortSignal,
    admission: Admission | undefined,
  ): Promise<(() => void) | undefined> {
    if (!admission) return () => undefined;
    const span = request.span.child("admission");
    try {
      const release = await admission.enter(
        signal,
        callerOf(request),
        request.headers[noQueueHeader] !== "1",
      );
      span.end();
      return release;
    } catch (error) {
      span.end(asFailure(error).code);
      throw error;
    }
  }

  /** Ends a request that got no slot, because this replica stops or the client has disconnected. */
  #endWithoutSpeech(reply: FastifyReply): FastifyReply {
    if (this.#stopping.signal.aborted) throw this.#stopping.signal.reason;
    return reply.hijack();
  }

  #servingEngines(): Engines {
    if (this.#state === "draining") {
      throw draining();
    }
    if (this.#state === "starting" || !this.#engines) {
      throw new Failure(
        "model_unreachable",
        "The speech engines are starting. Send the request again in a few seconds.",
        {
          retryAfterSeconds: 2,
        },
      );
    }
    return this.#engines;
  }
}

/** Returns a speech job that also records the engine's work in the trace. */
function inSpan(speech: SpeechJob, span: Span): SpeechJob {
  if (!span.isRecording) return speech;
  const { speaker } = speech;
  return { ...speech, speaker: { ...speaker, engine: traced(speaker.engine, span) } };
}

/** Returns the request ID of the API tier if that ID is valid, and otherwise a new ID. */
function requestId({ headers }: RawRequestDefaultExpression): string {
  const value = headers["x-request-id"];
  return typeof value === "string" && /^[\w.:-]{1,128}$/.test(value) ? value : randomUUID();
}

/**
 * Returns the ID of the request's API key. API tiers of earlier versions do not send this ID, and their
 * requests share one turn in the queue.
 */
function callerOf({ headers }: FastifyRequest): string {
  const value = headers[callerHeader];
  return typeof value === "string" ? value.slice(0, maxCallerLength) : "";
}

function whenClosed({ raw }: FastifyReply, onClose: () => void): void {
  if (raw.closed) onClose();
  else raw.once("close", onClose);
}

/**
 * The reason of the abort at the end of every response. This error is created once, because the default
 * reason captures a stack trace each time.
 */
const closedConnection = new Error("the response is complete, or the client disconnected");

/**
 * Calls `onClose`, and aborts the returned signal, when the response is complete or the client disconnects.
 */
function closed(reply: FastifyReply, onClose: () => void): AbortSignal {
  const disconnect = new AbortController();
  whenClosed(reply, () => {
    disconnect.abort(closedConnection);
    onClose();
  });
  return disconnect.signal;
}

function secondsSince(startMs: number): number {
  return (performance.now() - startMs) / 1000;
}
