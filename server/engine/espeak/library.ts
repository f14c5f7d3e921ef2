/**
 * eSpeak NG as WebAssembly, an optional npm package under GPL-3.0. Only the engine process loads this
 * package.
 */
const packageName = "@echogarden/espeak-ng-emscripten";

export interface EspeakEvent {
  readonly type: string;
  /** The time in the audio, in milliseconds. */
  readonly audio_position: number;
  readonly id?: string | number;
}

export interface EspeakWorker {
  set_voice(name: string): number | undefined;
  set_rate(wordsPerMinute: number): void;
  set_pitch(pitch: number): void;
  get_samplerate(): number;
  /**
   * Converts plain text to phonemes without synthesis.
   * @returns the address of the phonemes, a UTF-8 string that ends with a zero.
   */
  convert_to_phonemes(text: string, asIpa: boolean): { readonly ptr: number };
  /** Synthesizes SSML. The callback returns true to stop the synthesis. */
  synthesize(ssml: string, listener: (audio: Int16Array, events: readonly EspeakEvent[]) => boolean): void;
}

/** Selects voices of a worker, and restores the worker's state. */
export interface Espeak {
  /**
   * Selects a voice and resets the worker's state. Every utterance therefore starts with the same state.
   * @throws Error if the voice does not exist.
   */
  withVoice(name: string): EspeakWorker;
  /** Selects a voice without a reset, for calls that do not depend on earlier calls, such as reading. */
  reading(name: string): EspeakWorker;
  /** Returns the sounds of each word of plain text, for the selected voice. */
  wordsOf(text: string): string[][];
}

interface Module {
  readonly eSpeakNGWorker: new () => EspeakWorker;
  /**
   * The WebAssembly memory. When the memory grows, this property becomes a new array, so it must be read
   * again before each use.
   */
  readonly HEAPU8: Uint8Array;
}

/** The separator of two clauses in eSpeak NG's phonemes. */
const clauseMark = "|";
/**
 * The size of the text buffer, which is longer than any utterance. A buffer of this size does not grow after
 * the memory was copied.
 */
const longestSsmlBytes = 256 * 1024;

/**
 * Loads eSpeak NG.
 * @throws Error if the package is not installed.
 */
export async function loadEspeak(): Promise<Espeak> {
  const { default: load } = (await import(packageName)) as { default: () => Promise<Module> };
  const { module, worker } = await withFixedClock(async () => {
    const loaded = await load();
    return { module: loaded, worker: await new loaded.eSpeakNGWorker() };
  });
  worker.synthesize(`<speak>${" ".repeat(longestSsmlBytes)}</speak>`, () => true);
  // eSpeak NG enlarges the buffer in the call that follows the long text.
  worker.synthesize("<speak>.</speak>", () => true);
  return new ResettingEspeak(module, worker);
}

/**
 * Runs a function with a fixed clock. eSpeak NG seeds its noise with the start time, so a fixed clock gives
 * every process the same noise.
 */
async function withFixedClock<T>(start: () => Promise<T>): Promise<T> {
  const now = Date.now;
  Date.now = () => 0;
  try {
    return await start();
  } finally {
    Date.now = now;
  }
}

/**
 * Returns whether a phoneme event is a sound. A pause has no name, and a name in parentheses marks a change
 * of language.
 */
export function isSound(name: string): boolean {
  return name !== "" && !name.startsWith("(");
}

/**
 * Restores eSpeak NG's memory before each utterance, so that equal utterances have equal audio. Without the
 * restored memory, the phase of the voice would continue from the previous utterance. eSpeak NG has no
 * function that resets the phase.
 */
class ResettingEspeak implements Espeak {
  readonly #module: Module;
  readonly #worker: EspeakWorker;
  readonly #fresh: Uint8Array;
  #voice: { readonly name: string; readonly memory: Uint8Array } | undefined;

  constructor(module: Module, worker: EspeakWorker) {
    this.#module = module;
    this.#worker = worker;
    this.#fresh = module.HEAPU8.slice();
  }

  withVoice(name: string): EspeakWorker {
    // A copy of the memory is faster than the selection of a voice, which reads a dictionary for tens of ms.
    if (this.#voice?.name === name) this.#restore(this.#voice.memory);
    else this.#select(name);
    return this.#worker;
  }

  reading(name: string): EspeakWorker {
    if (this.#voice?.name !== name) this.#select(name);
    return this.#worker;
  }

  wordsOf(text: string): string[][] {
    const { ptr } = this.#worker.convert_to_phonemes(text, true);
    const memory = this.#module.HEAPU8;
    const ipa = Buffer.from(memory.buffer, ptr, memory.indexOf(0, ptr) - ptr).toString();
    const words = ipa.split(" ").filter((word) => word !== "" && word !== clauseMark);
    return words.map((word) => word.split("_").filter(isSound));
  }

  #select(name: string): void {
    this.#restore(this.#fresh);
    const status = this.#worker.set_voice(name);
    if (status !== 0) throw new Error(`eSpeak NG could not select voice ${name} (status ${status})`);
    this.#voice = { name, memory: this.#module.HEAPU8.slice() };
  }

  #restore(memory: Uint8Array): void {
    const now = this.#module.HEAPU8;
    now.set(memory);
    now.fill(0, memory.length);
  }
}
