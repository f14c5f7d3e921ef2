import type { GeneratorCounts } from "../../runtime/generator-outcomes.ts";
import { GeneratorError } from "../../runtime/generator-outcomes.ts";
import type { CodecProcessPool } from "../codec/codec-pool.ts";
import { FrameReader } from "../codec/frame-reader.ts";
import { FrameStore } from "../codec/frame-store.ts";
import { Seam } from "../codec/seam.ts";
import { WindowPlan } from "../codec/windows.ts";
import type { CodecManifest, TokensManifest } from "../model/manifest.ts";
import type { Tokenize } from "../model/prompt.ts";
import type { ServerAddress } from "../server/server-address.ts";
import { Completions } from "./completion.ts";
import type { SpeechWriter, WriteRequest } from "./speech-writer.ts";

/** A client with less audio than this gets the existing frames, even if they are less than a hop. */
const marginMs = 150;
/** Number of frames whose tokens may be dropped until the model counts as broken. */
const mostDroppedFrames = 12;
/** Duration of a measurement in seconds of audio. */
const measuredSeconds = 1;

interface TokensWriterOptions {
  readonly manifest: TokensManifest;
  readonly tokenize: Tokenize;
  readonly codec: CodecProcessPool;
  readonly counts: GeneratorCounts;
  /** Longest time without a token in milliseconds. */
  readonly silenceMs: number;
  /** Called whenever tokens arrive. */
  readonly heard: () => void;
}

/**
 * A model that writes a codec's codes. They are assembled into frames, and decoded window by window while
 * more are written.
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

  async *write(ask: WriteRequest): AsyncGenerator<Int16Array, void, void> {
    const leave = new AbortController();
    const signal = AbortSignal.any([ask.signal, leave.signal]);
    const store = new FrameStore();
    const writing = this.#fill(store, { ...ask, signal });
    try {
      yield* this.#decoded(store, ask);
    } finally {
      leave.abort();
      await writing;
    }
  }

  async proves(server: ServerAddress, signal: AbortSignal): Promise<boolean> {
    const { pre, post } = this.#options.manifest.prompt;
    const ask = { prompt: [...pre, ...post], sampling: greedy(1), seed: undefined };
    for await (const _ of this.#completions.write(server, ask, this.#options.silenceMs, signal)) return true;
    return !signal.aborted; // Its end token also counts as a token.
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
    const prompt = tokenize(Object.values(manifest.voices)[0] ?? "", `This is stream number ${stream}.`);
    const sampling = { ...greedy(Math.ceil(measuredSeconds * this.tokensPerSecond)), temperature: 1 };
    const startedAt = performance.now();
    const ask = { prompt, sampling, seed: undefined, withoutEnd: true };
    let tokens = 0;
    for await (const more of this.#completions.write(server, ask, silenceMs, signal)) tokens += more.length;
    return tokens / this.tokensPerSecond / ((performance.now() - startedAt) / 1000);
  }

  /** Never rejects: the reader of the frames gets the error. */
  async #fill(store: FrameStore, ask: WriteRequest): Promise<void> {
    try {
      const reader = new FrameReader(this.#codec);
      const { tokenize, counts, heard, silenceMs } = this.#options;
      const completion = { prompt: tokenize(ask.voice, ask.text), sampling: ask.sampling, seed: ask.seed };
      let written = 0;
      let dropped = 0;
      for await (const tokens of this.#completions.write(ask.server, completion, silenceMs, ask.signal)) {
        heard();
        store.push(reader.push(tokens));
        written += tokens.length;
        counts.tokens += tokens.length;
        counts.droppedTokens += reader.dropped - dropped;
        dropped = reader.dropped;
        this.#requireSpeech(dropped, store);
      }
      if (store.length === 0 && !ask.signal.aborted)
        throw new GeneratorError("nonsense", "the generator generated no speech");
      store.end();
      if (!ask.signal.aborted) ask.onWritten(written < this.#completions.mostTokens(completion));
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

  async *#decoded(
    store: FrameStore,
    { dueAtMs, isFirst, signal }: WriteRequest,
  ): AsyncGenerator<Int16Array, void, void> {
    const { rate, frameSamples } = this.#codec;
    const plan = new WindowPlan(this.#codec);
    const seam = new Seam(this.#codec);
    let driesAtMs: number | undefined;
    while (!signal.aborted) {
      await store.waitFor(plan.wanted, plan.least, (driesAtMs ?? Number.POSITIVE_INFINITY) - marginMs);
      if (signal.aborted) return;
      const window = plan.next(store.length, store.isWhole);
      if (!window) return;
      const job = { frames: store.slice(window.from, window.to), wanted: seam.needs(window) };
      const isHeard = driesAtMs !== undefined || !isFirst;
      const audio = await this.#options.codec.decode(job, {
        dueAtMs: driesAtMs ?? dueAtMs,
        isFirst: !isHeard,
      });
      // The audio of a running stream is queued; that of a new stream is decoded immediately.
      const nowMs = performance.now();
      driesAtMs =
        (driesAtMs ?? (isHeard ? Math.max(nowMs, dueAtMs) : nowMs)) +
        ((window.end - window.begin) * frameSamples * 1000) / rate;
      yield seam.join(audio, window);
    }
  }
}

function greedy(maxTokens: number) {
  return { repetitionPenalty: 1, temperature: 0, topP: 1, maxTokens };
}
