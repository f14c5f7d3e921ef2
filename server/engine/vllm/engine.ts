import { availableParallelism } from "node:os";
import { join } from "node:path";
import { sleep, systemClock } from "../../../lib/clock.ts";
import { createStreamStretcher } from "../../audio/time-stretch.ts";
import { Failure } from "../../contract/errors.ts";
import {
  type EngineFrame,
  type Sampling,
  samplingDefaults,
  type TokenTimestamp,
  type Utterance,
} from "../../contract/speech.ts";
import type { Engine, EngineLog } from "../runtime/engine.ts";
import { type GeneratorCounts, GeneratorError, newCounts } from "../runtime/generator-outcomes.ts";
import { measureCapacity, streamsOfDecoder } from "./capacity.ts";
import { CodecProcessPool } from "./codec/codec-pool.ts";
import { firstVoice, modelVoice } from "./model/manifest.ts";
import type { ArcanaManifest } from "./model/manifest-schema.ts";
import { type GeneratorModel, readModelFolder } from "./model/model-folder.ts";
import { type ReadSounds, type ToText, textFor } from "./prompt-text.ts";
import { MetricsRelay } from "./server/metrics-relay.ts";
import {
  ConnectedServer,
  type GeneratorServer,
  type HealthCheckOptions,
  SupervisedServer,
} from "./server/server.ts";
import type { ServerAddress } from "./server/server-address.ts";
import { vllmArguments, vllmEnvironment } from "./server/vllm-process.ts";
import type { GeneratorSettings } from "./settings.ts";
import { alignTimes, EdgeFinder, type ReadTimes } from "./word-timestamps.ts";
import { AudioWriter } from "./writer/audio-writer.ts";
import type { SpeechWriter, WriteRequest } from "./writer/speech-writer.ts";
import { TokensWriter } from "./writer/tokens-writer.ts";

export interface GeneratorOptions extends GeneratorSettings {
  /** The highest number of admitted streams. */
  readonly maxStreams: number;
  /** The address at which the model tier serves the metrics of vLLM. */
  readonly host: string;
  readonly log: EngineLog;
  /**
   * Estimates the relative durations of words, which the model does not report. If the function is undefined,
   * speech has no word timestamps.
   */
  readonly readTimes?: ReadTimes | undefined;
  /** Reads the phonemes of words. A model that reads phonemes requires this function. */
  readonly readSounds?: ReadSounds | undefined;
}

const defaultTimesWithinMs = 500;
const retryAfterMs = 200;
/** The delay after which clients should retry. A restarted vLLM needs this time to load its model. */
const retryAfterSeconds = 15;
const mostCodecProcesses = 8;
/** The number of windows that a GPU decodes together. */
const gpuBatch = 16;

/** Synthesizes with a language model that vLLM serves. */
export class VllmEngine implements Engine {
  readonly name = "vllm";
  readonly rate: number;
  readonly tokensPerSecond?: number;
  readonly capacity: number;
  readonly realTimeStreams: number;
  readonly worksAhead = true;
  readonly counts: GeneratorCounts;
  readonly samplingDefaults: Sampling;
  readonly #manifest: ArcanaManifest;
  readonly #toText: ToText;
  readonly #server: GeneratorServer;
  readonly #writer: SpeechWriter;
  readonly #relay: MetricsRelay | undefined;
  readonly #seed: number | undefined;
  readonly #readTimes: ReadTimes | undefined;
  readonly #timesWithinMs: number;
  readonly #log: EngineLog;

  private constructor(parts: Parts, realTimeStreams: number) {
    const { model, server, relay, writer, seed, counts, readTimes, toText, timesWithinMs, log } = parts;
    this.rate = writer.rate;
    if (writer.tokensPerSecond) this.tokensPerSecond = writer.tokensPerSecond;
    this.capacity = realTimeStreams;
    this.realTimeStreams = realTimeStreams;
    this.counts = counts;
    this.samplingDefaults = samplingOf(model);
    this.#manifest = model.manifest;
    this.#toText = toText;
    this.#server = server;
    this.#relay = relay;
    this.#writer = writer;
    this.#seed = seed;
    this.#readTimes = readTimes;
    this.#timesWithinMs = timesWithinMs;
    this.#log = log;
  }

  /**
   * Starts vLLM and the decoder, and measures their speed.
   * @throws Error that names the invalid file of the model, or the reason why vLLM does not start.
   */
  static async open(options: GeneratorOptions): Promise<VllmEngine> {
    const parts = await openParts(options);
    try {
      await speakFirst(parts);
      const streams = options.capacity ?? (await measureStreams(parts, options));
      return new VllmEngine(parts, Math.min(streams, options.maxStreams));
    } catch (error) {
      await closeParts(parts);
      throw error;
    }
  }

  get restarts(): number {
    return this.#server.restarts + this.#writer.restarts;
  }

  healthy(): boolean {
    return this.#server.healthy();
  }

  notReady(): string | undefined {
    return this.#server.address() ? undefined : "vLLM is being started";
  }

  /**
   * Synthesizes one utterance.
   * @param onWritten called when vLLM has written the whole utterance. The next utterance may then start
   * before the audio of this utterance was consumed.
   */
  async *speak(
    utterance: Utterance,
    signal: AbortSignal,
    onWritten: () => void = () => undefined,
  ): AsyncGenerator<EngineFrame, void, void> {
    let isWhole = false;
    const over = new AbortController();
    const edges = new EdgeFinder(this.rate);
    const reading = this.#read(utterance, AbortSignal.any([signal, over.signal]));
    const speech = this.#samples(utterance, signal, (whole) => {
      isWhole = whole;
      onWritten();
    });
    try {
      for await (const samples of speech) {
        edges.push(samples);
        yield { samples, rate: this.rate, times: [] };
      }
      if (!isWhole || signal.aborted) return;
      const late = sleep(systemClock, this.#timesWithinMs, over.signal).then(
        (): readonly TokenTimestamp[] => [],
      );
      yield* this.#wordTimes(await Promise.race([reading, late]), edges);
    } finally {
      over.abort();
    }
  }

  async *#samples(
    utterance: Utterance,
    signal: AbortSignal,
    onWritten: WriteRequest["onWritten"],
  ): AsyncGenerator<Int16Array, void, void> {
    if (utterance.voice.kind !== "generated") throw new Error(`vLLM has no ${utterance.voice.kind} voices`);
    let isAudioSent = false;
    let isOver = false;
    this.counts.writing++;
    try {
      for (let attempt = 1; ; attempt++) {
        try {
          for await (const samples of this.#speakOnce(utterance, utterance.voice.name, signal, onWritten)) {
            isAudioSent = true;
            yield samples;
          }
          isOver = !signal.aborted;
          return;
        } catch (cause) {
          isOver = cause instanceof GeneratorError;
          const mayRetry =
            cause instanceof GeneratorError && cause.kind !== "refused" && attempt === 1 && !isAudioSent;
          if (cause instanceof GeneratorError) this.counts.troubles[cause.kind]++;
          if (!mayRetry) throw failure(cause, isAudioSent);
          // The wait gives this process time to detect that vLLM has ended.
          await sleep(systemClock, retryAfterMs, signal);
        }
      }
    } finally {
      this.counts.writing--;
      if (!isOver) this.counts.aborted++; // The client has disconnected.
    }
  }

  async close(): Promise<void> {
    await closeParts({ relay: this.#relay, server: this.#server, writer: this.#writer });
  }

  /**
   * Reads the durations of words. The reading starts together with the synthesis, so that the durations are
   * known at the end of the speech. The promise never rejects, because speech without word timestamps is
   * better than no speech.
   */
  async #read(utterance: Utterance, signal: AbortSignal): Promise<readonly TokenTimestamp[]> {
    try {
      return (await this.#readTimes?.(utterance, signal)) ?? [];
    } catch (error) {
      this.#log.warn(
        { err: error },
        "the durations of a phrase's words could not be read; the phrase has no word timestamps",
      );
      return [];
    }
  }

  /**
   * Yields the estimated times of words. The times are scaled to the edges of the speech, which are known at
   * the end of the speech.
   */
  *#wordTimes(reading: readonly TokenTimestamp[], finder: EdgeFinder): Generator<EngineFrame, void, void> {
    const edges = finder.edges();
    const times = edges ? alignTimes(reading, edges) : [];
    if (times.length > 0) yield { samples: new Int16Array(0), rate: this.rate, times };
  }

  async *#speakOnce(
    utterance: Utterance,
    voice: string,
    signal: AbortSignal,
    onWritten: WriteRequest["onWritten"],
  ): AsyncGenerator<Int16Array, void, void> {
    if (signal.aborted) return;
    const server = this.#server.address();
    if (!server) throw new GeneratorError("away", "vLLM is being started");
    const text = await this.#toText(utterance.tokens, signal);
    if (text === undefined) return;
    const speech = this.#writer.write({
      server,
      text,
      voice: modelVoice(this.#manifest, voice),
      sampling: utterance.sampling ?? this.samplingDefaults,
      seed: this.#seed,
      dueAtMs: utterance.dueAtMs ?? performance.now(),
      isFirst: utterance.isFirst ?? false,
      signal,
      onWritten,
    });
    if (utterance.stretch === 1) return yield* speech;
    const stretcher = createStreamStretcher(this.rate, utterance.stretch);
    for await (const samples of speech) yield stretcher.push(samples);
    if (!signal.aborted) yield stretcher.finish();
  }
}

interface Parts {
  readonly model: GeneratorModel;
  readonly server: GeneratorServer;
  readonly relay: MetricsRelay | undefined;
  readonly writer: SpeechWriter;
  readonly seed: number | undefined;
  readonly counts: GeneratorCounts;
  readonly readTimes: ReadTimes | undefined;
  readonly toText: ToText;
  readonly timesWithinMs: number;
  readonly log: EngineLog;
}

async function openParts(options: GeneratorOptions): Promise<Parts> {
  // The model is validated first: vLLM takes a minute to start, and its errors are less precise.
  const model = await readModelFolder(options.folder);
  const toText = textFor(model, options.readSounds);
  const counts = newCounts();
  let server: GeneratorServer | undefined;
  const writer = await openWriter(model, options, counts, () => server?.heard());
  try {
    server = await openServer(model, writer, options);
    const relay = await openRelay(server, options);
    const { seed, readTimes, timesWithinMs = defaultTimesWithinMs, log } = options;
    return { model, server, relay, writer, seed, counts, readTimes, toText, timesWithinMs, log };
  } catch (error) {
    await server?.close();
    await writer.close();
    throw error;
  }
}

async function openWriter(
  model: GeneratorModel,
  { codec, log, hangSeconds }: GeneratorOptions,
  counts: GeneratorCounts,
  heard: () => void,
): Promise<SpeechWriter> {
  const silenceMs = 1000 * hangSeconds;
  if (!("tokenize" in model)) return new AudioWriter({ manifest: model.manifest, silenceMs, heard });
  const { manifest, tokenize, folder } = model;
  const onGpu = codec.providers[0] !== "cpu";
  const processes = codec.processes ?? (onGpu ? 1 : Math.min(availableParallelism(), mostCodecProcesses));
  const pool = await CodecProcessPool.open({
    file: join(folder, manifest.codec.onnx),
    codec: manifest.codec,
    providers: codec.providers,
    processes,
    batch: onGpu ? gpuBatch : 1,
    log,
  });
  return new TokensWriter({ manifest, tokenize, codec: pool, counts, silenceMs, heard });
}

function openServer(
  model: GeneratorModel,
  writer: SpeechWriter,
  options: GeneratorOptions,
): Promise<GeneratorServer> {
  const { server, log, startSeconds, hangSeconds, maxStreams } = options;
  const proofMs = 1000 * hangSeconds;
  const proof = (address: ServerAddress, signal: AbortSignal) => writer.proves(address, signal);
  const watch: HealthCheckOptions = {
    proof,
    log,
    lookMs: proofMs / 2,
    proofMs,
    startMs: 1000 * startSeconds,
  };
  if (server.kind === "elsewhere")
    return ConnectedServer.open({ url: server.url, apiKey: server.apiKey }, watch);
  return SupervisedServer.open({
    ...watch,
    program: server.program,
    args: vllmArguments(model, maxStreams, server.args),
    environment: { ...vllmEnvironment, ...server.environment },
    port: server.port,
    apiKey: server.apiKey,
  });
}

async function openRelay(
  vllm: GeneratorServer,
  { server, host }: GeneratorOptions,
): Promise<MetricsRelay | undefined> {
  if (server.kind === "elsewhere" || server.metricsPort === undefined) return undefined;
  return MetricsRelay.open({ host, port: server.metricsPort, address: () => vllm.address() });
}

async function closeParts({
  relay,
  server,
  writer,
}: Pick<Parts, "relay" | "server" | "writer">): Promise<void> {
  await relay?.close();
  await server.close();
  await writer.close();
}

/**
 * Synthesizes the first phrase. The phrase gets one retry, like a request, because sampling may end a phrase
 * immediately.
 */
async function speakFirst(parts: Parts): Promise<void> {
  try {
    await speakOnce(parts);
  } catch (error) {
    if (!(error instanceof GeneratorError) || error.kind !== "nonsense") throw error;
    await speakOnce(parts);
  }
}

/**
 * Synthesizes one phrase with vLLM and the decoder, before the first request.
 * @throws Error if the result has no audio.
 */
async function speakOnce({ model, server, writer, toText, seed }: Parts): Promise<void> {
  const { signal } = new AbortController();
  const text = await toText([{ before: "", text: "Ready", after: ".", stretch: 1 }], signal);
  const address = server.address();
  if (!address)
    throw new Error("vLLM became unavailable before it returned its first audio. Check the log of vLLM.");
  const speech = writer.write({
    server: address,
    text: text ?? "",
    voice: firstVoice(model.manifest),
    sampling: { ...samplingOf(model), maxTokens: 200 },
    seed,
    dueAtMs: 0,
    isFirst: false,
    signal,
    onWritten: () => undefined,
  });
  for await (const samples of speech) if (samples.length > 0) break;
}

/**
 * Measures the speed of vLLM and of the decoder. Returns the number of concurrent streams that are faster
 * than real time, at least one.
 */
async function measureStreams(
  { server, writer }: Parts,
  { maxStreams, log }: GeneratorOptions,
): Promise<number> {
  const address = server.address();
  if (!address)
    throw new Error("vLLM became unavailable while its speed was measured. Check the log of vLLM.");
  const never = new AbortController().signal;
  const written = await measureCapacity(maxStreams, (streams) => writer.speedOf(streams, address, never));
  const decoded = streamsOfDecoder(writer.decoderSpeed);
  const streams = Math.max(1, Math.min(written.streams, decoded, maxStreams));
  const fields = {
    streams,
    vllmStreams: written.streams,
    decoderStreams: Number.isFinite(decoded) ? decoded : undefined,
    speedAlone: Number(written.speedAlone.toFixed(2)),
  };
  if (written.streams === 0 || decoded === 0)
    log.warn(fields, "the generator is slower than real time on this machine; streams have gaps");
  else log.info(fields, "the number of streams that are faster than real time was measured");
  return streams;
}

/** Returns the sampling of a request without sampling options: arcana's defaults, changed by the manifest. */
function samplingOf({ manifest }: GeneratorModel): Sampling {
  return { ...samplingDefaults, ...manifest.sampling };
}

function failure(cause: unknown, isAudioSent: boolean): unknown {
  if (cause instanceof GeneratorError && cause.kind === "away" && !isAudioSent) {
    return new Failure(
      "model_unreachable",
      "The generator of arcana is not running. Try again in a moment.",
      {
        retryAfterSeconds,
        cause,
      },
    );
  }
  return new Failure(
    "model_failed",
    "The generator of arcana failed during the synthesis. Send the request again.",
    { cause },
  );
}
