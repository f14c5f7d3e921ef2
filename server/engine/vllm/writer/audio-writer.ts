import { GeneratorError } from "../../runtime/generator-outcomes.ts";
import { firstVoice } from "../model/manifest.ts";
import type { AudioManifest } from "../model/manifest-schema.ts";
import { type ServerAddress, servedName } from "../server/server-address.ts";
import { readResponseBody } from "./response-body.ts";
import type { SpeechWriter, WriteRequest } from "./speech-writer.ts";

const testSentence = "This sentence is as long as most of those that people say.";

interface AudioWriterOptions {
  readonly manifest: AudioManifest;
  /** The longest time without audio, in milliseconds. */
  readonly silenceMs: number;
  /** Called whenever audio arrives. */
  readonly heard: () => void;
}

/** Synthesizes with a model that returns audio samples at `POST /v1/audio/speech`. */
export class AudioWriter implements SpeechWriter {
  readonly rate: number;
  readonly tokensPerSecond = undefined;
  readonly decoderSpeed = Number.POSITIVE_INFINITY;
  readonly restarts = 0;
  readonly #options: AudioWriterOptions;

  constructor(options: AudioWriterOptions) {
    this.rate = options.manifest.rate;
    this.#options = options;
  }

  async *write({
    server,
    text,
    voice,
    sampling,
    seed,
    signal,
    onWritten,
  }: WriteRequest): AsyncGenerator<Int16Array, void, void> {
    const body = JSON.stringify({
      model: servedName,
      input: text,
      voice: voice.name,
      ...(voice.description !== undefined && { instructions: voice.description }),
      response_format: "pcm",
      stream: true,
      temperature: sampling.temperature,
      top_p: sampling.topP,
      repetition_penalty: sampling.repetitionPenalty,
      max_new_tokens: sampling.maxTokens,
      ...(seed !== undefined && { seed }),
    });
    const { silenceMs, heard } = this.#options;
    const bytes = readResponseBody({ server, path: "/v1/audio/speech", body, silenceMs, signal });
    let samples = 0;
    for await (const piece of wholeSamples(bytes)) {
      heard();
      samples += piece.length;
      yield piece;
    }
    if (signal.aborted) return;
    if (samples === 0) throw new GeneratorError("nonsense", "the generator returned no audio for a phrase");
    onWritten(true); // The server does not report whether its limit cut the audio.
  }

  async proves(server: ServerAddress, signal: AbortSignal): Promise<boolean> {
    for await (const _ of this.#writeTestSentence(server, signal)) return true;
    return false;
  }

  async speedOf(streams: number, server: ServerAddress, signal: AbortSignal): Promise<number> {
    const speeds = Array.from({ length: streams }, async () => {
      const startedAt = performance.now();
      let samples = 0;
      for await (const piece of this.#writeTestSentence(server, signal)) samples += piece.length;
      return samples / this.rate / ((performance.now() - startedAt) / 1000);
    });
    return Math.min(...(await Promise.all(speeds)));
  }

  close(): Promise<void> {
    return Promise.resolve(); // This kind of model has no decoder process.
  }

  #writeTestSentence(server: ServerAddress, signal: AbortSignal): AsyncGenerator<Int16Array, void, void> {
    const sampling = { repetitionPenalty: 1, temperature: 0.5, topP: 1, maxTokens: 1200 };
    const voice = firstVoice(this.#options.manifest);
    const onWritten = () => undefined;
    return this.write({
      server,
      text: testSentence,
      voice,
      sampling,
      seed: undefined,
      dueAtMs: 0,
      isFirst: false,
      signal,
      onWritten,
    });
  }
}

/**
 * Divides bytes into samples. The response may be split at any byte, and a sample has two bytes in
 * little-endian order.
 */
async function* wholeSamples(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Int16Array, void, void> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of pieces) {
    const bytes = Buffer.concat([rest, piece]);
    const whole = bytes.length - (bytes.length % 2);
    rest = bytes.subarray(whole);
    if (whole === 0) continue;
    const samples = new Int16Array(whole / 2);
    for (let i = 0; i < samples.length; i++) samples[i] = bytes.readInt16LE(2 * i);
    yield samples;
  }
}
