import type { GeneratorCounts } from "../../runtime/generator-outcomes.ts";
import { GeneratorError } from "../../runtime/generator-outcomes.ts";
import type { CodecProcessPool } from "../codec/codec-pool.ts";
import { FrameReader } from "../codec/frame-reader.ts";
import { FrameStore } from "../codec/frame-store.ts";
import { Seam } from "../codec/seam.ts";
import { WindowPlan } from "../codec/windows.ts";
import { firstVoice } from "../model/manifest.ts";
import type { CodecManifest, TokensManifest } from "../model/manifest-schema.ts";
import type { Tokenize } from "../model/prompt.ts";
import type { ServerAddress } from "../server/server-address.ts";
import { Completions } from "./completion.ts";
import { SpeechStart } from "./speech-start.ts";
import type { SpeechWriter, WriteRequest } from "./speech-writer.ts";

/**
 * The minimum duration of audio that a client should have left. A client with less audio gets the existing
 * frames, even if these are fewer than a hop.
 */
const marginMs = 150;
/** The number of dropped frames after which the model's output counts as unusable. */
const mostDroppedFrames = 12;
/** The seconds of audio for which a measurement requests tokens. */
const measuredSeconds = 1;

interface TokensWriterOptions {
  readonly manifest: TokensManifest;
  readonly tokenize: Tokenize;
  readonly codec: CodecProcessPool;
  readonly counts: GeneratorCounts;
  /** The longest time without a token, in milliseconds. */
  readonly silenceMs: number;
  /** Called whenever tokens arrive. */
  readonly heard: () => void;
}

/**
 * Synthesizes with a model that writes a codec's codes. The codes are assembled into frames. The frames are
 * decoded window by window while the model writes more codes.
 */
export class TokensWriter implements SpeechWriter {
  readonly rate: number;
  readonly tokensPerSecond: number;
  readonly #options: TokensWriterOptions;
  readonly #codec: CodecManifest;
  readonly #completions: Completions;

  constructor(options: TokensWriterOptions) {
    this.#options = options;
    this.#codec = options.manifest.codec;
    this.#completions = new Completions(options.manifest);
    const { rate, frameSamples, slots } = this.#codec;
    this.rate = rate;
    this.tokensPerSecond = (rate / frameSamples) * slots.length;
  }

  get decoderSpeed(): number {
    return this.#options.codec.speed;
  }

  get restarts(): number {
    return this.#options.codec.restarts;
  }

  async *write(request: WriteRequest): AsyncGenerator<Int16Array, void, void> {
    const cancel = new AbortController();
    const signal = AbortSignal.any([request.signal, cancel.signal]);
    const store = new FrameStore();
    const writing = this.#fill(store, { ...request, signal });
    try {
      yield* this.#decodeFrames(store, request);
    } finally {
      cancel.abort();
      await writing;
    }
  }

  async proves(server: ServerAddress, signal: AbortSignal): Promise<boolean> {
    const { pre, post } = this.#options.manifest.prompt;
    const request = { prompt: [...pre, ...post], sampling: greedySampling(1), seed: undefined };
    for await (const _ of this.#completions.write(server, request, this.#options.silenceMs, signal))
      return true;
    return !signal.aborted; // A completion without tokens is also a success, because vLLM wrote an end token.
  }

  async speedOf(streams: number, server: ServerAddress, signal: AbortSignal): Promise<number> {
    const speeds = Array.from({ length: streams }, (_, i) => this.#speed(i, server, signal));
    return Math.min(...(await Promise.all(speeds)));
  }

  close(): Promise<void> {
    return this.#options.codec.close();
  }

  async #speed(stream: number, server: ServerAddress, signal: AbortSignal): Promise<number> {
    const { manifest, tokenize, silenceMs } = this.#options;
    const prompt = tokenize(firstVoice(manifest), `This is stream number ${stream}.`);
    const sampling = { ...greedySampling(Math.ceil(measuredSeconds * this.tokensPerSecond)), temperature: 1 };
    const startedAt = performance.now();
    const request = { prompt, sampling, seed: undefined, withoutEnd: true };
    let tokens = 0;
    for await (const more of this.#completions.write(server, request, silenceMs, signal))
      tokens += more.length;
    return tokens / this.tokensPerSecond / ((performance.now() - startedAt) / 1000);
  }

  /**
   * Writes frames into the store. The promise never rejects, because the store passes an error to its reader.
   */
  async #fill(store: FrameStore, request: WriteRequest): Promise<void> {
    try {
      const reader = new FrameReader(this.#codec);
      const start = new SpeechStart(this.#options.manifest.startAfter);
      const { tokenize, counts, heard, silenceMs } = this.#options;
      const completion = {
        prompt: tokenize(request.voice, request.text),
        sampling: request.sampling,
        seed: request.seed,
      };
      let tokenCount = 0;
      let dropped = 0;
      for await (const tokens of this.#completions.write(
        request.server,
        completion,
        silenceMs,
        request.signal,
      )) {
        heard();
        store.push(reader.push(start.push(tokens)));
        tokenCount += tokens.length;
        counts.tokens += tokens.length;
        counts.droppedTokens += reader.dropped - dropped;
        dropped = reader.dropped;
        this.#requireSpeech(dropped, store);
      }
      if (store.length === 0 && !request.signal.aborted)
        throw new GeneratorError("nonsense", "the generator returned no speech for a phrase");
      store.end();
      if (!request.signal.aborted) request.onWritten(tokenCount < this.#completions.mostTokens(completion));
    } catch (error) {
      store.end(error as Error);
    }
  }

  #requireSpeech(dropped: number, store: FrameStore): void {
    const droppedFrames = dropped / this.#codec.slots.length;
    if (droppedFrames < mostDroppedFrames || droppedFrames < store.length) return;
    throw new GeneratorError(
      "nonsense",
      `the generator wrote ${dropped} tokens that are not codes of the codec`,
    );
  }

  async *#decodeFrames(
    store: FrameStore,
    { dueAtMs, isFirst, signal }: WriteRequest,
  ): AsyncGenerator<Int16Array, void, void> {
    const { rate, frameSamples } = this.#codec;
    const plan = new WindowPlan(this.#codec);
    const seam = new Seam(this.#codec);
    let runsOutAtMs: number | undefined;
    while (!signal.aborted) {
      await store.waitFor(plan.wanted, plan.least, (runsOutAtMs ?? Number.POSITIVE_INFINITY) - marginMs);
      if (signal.aborted) return;
      const window = plan.next(store.length, store.isWhole);
      if (!window) return;
      const job = { frames: store.slice(window.from, window.to), wanted: seam.needs(window) };
      const hasAudio = runsOutAtMs !== undefined || !isFirst;
      const audio = await this.#options.codec.decode(job, {
        dueAtMs: runsOutAtMs ?? dueAtMs,
        isFirst: !hasAudio,
      });
      // A running stream plays this audio after its queued audio. A new stream plays this audio immediately.
      const nowMs = performance.now();
      runsOutAtMs =
        (runsOutAtMs ?? (hasAudio ? Math.max(nowMs, dueAtMs) : nowMs)) +
        ((window.end - window.begin) * frameSamples * 1000) / rate;
      yield seam.join(audio, window);
    }
  }
}

function greedySampling(maxTokens: number) {
  return { repetitionPenalty: 1, temperature: 0, topP: 1, maxTokens };
}
