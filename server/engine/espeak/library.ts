/** eSpeak NG as WebAssembly (npm, GPL-3.0). Only the engine process loads it, and it is optional. */
const packageName = "@echogarden/espeak-ng-emscripten";

export interface EspeakEvent {
  readonly type: string;
  /** Milliseconds since the start of the synthesis. */
  readonly audio_position: number;
  readonly id?: string | number;
}

export interface EspeakWorker {
  set_voice(name: string): number | undefined;
  set_rate(wordsPerMinute: number): void;
  set_pitch(pitch: number): void;
  get_samplerate(): number;
  /**
   * Converts plain text to phonemes without synthesis. @returns their address: UTF-8 with a zero at the end.
   */
  convert_to_phonemes(text: string, asIpa: boolean): { readonly ptr: number };
  /** The callback stops the synthesis by returning true. */
  synthesize(ssml: string, listener: (audio: Int16Array, events: readonly EspeakEvent[]) => boolean): void;
}

/** A worker whose state is reset: each utterance starts with the state right after the voice was selected. */
export interface Espeak {
  /** Returns the worker with this voice. @throws Error if the voice does not exist. */
  withVoice(name: string): EspeakWorker;
  /** The same without the reset, for calls that do not depend on earlier ones, such as reading. */
  reading(name: string): EspeakWorker;
  /** The sounds of each word of plain text, by the current voice. */
  wordsOf(text: string): string[][];
}

interface Module {
  readonly eSpeakNGWorker: new () => EspeakWorker;
  /** The WebAssembly memory. When it grows, this property becomes a new array, so do not keep a reference. */
  readonly HEAPU8: Uint8Array;
}

/** Separator of two clauses. */
const clauseMark = "|";
/**
 * Longer than any utterance: the package's text buffer, which must fit into the restored memory, then never
 * grows again.
 */
const longestSsmlBytes = 256 * 1024;

/** @throws Error if the package is not installed. */
export async function loadEspeak(): Promise<Espeak> {
  const { default: load } = (await import(packageName)) as { default: () => Promise<Module> };
  const { module, worker } = await atTheEpoch(async () => {
    const loaded = await load();
    return { module: loaded, worker: await new loaded.eSpeakNGWorker() };
  });
  worker.synthesize(`<speak>${" ".repeat(longestSsmlBytes)}</speak>`, () => true);
  worker.synthesize("<speak>.</speak>", () => true); // The buffer grows only in the call after the one that was too long.
  return new ForgetfulEspeak(module, worker);
}

/**
 * eSpeak NG seeds its noise with the start time, so the seed is set to make every process produce the same
 * noise.
 */
async function atTheEpoch<T>(start: () => Promise<T>): Promise<T> {
  const now = Date.now;
  Date.now = () => 0;
  try {
    return await start();
  } finally {
    Date.now = now;
  }
}

/** Pauses are sounds without a name. A name in brackets marks a change of language. */
export function isSound(name: string): boolean {
  return name !== "" && !name.startsWith("(");
}

/**
 * Restores eSpeak NG's memory before each utterance, so that equal utterances have equal audio. Otherwise the
 * phase of the voice continues from the previous utterance, and eSpeak NG has no call that resets it.
 */
class ForgetfulEspeak implements Espeak {
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
    if (this.#voice?.name === name) this.#remember(this.#voice.memory);
    else this.#take(name); // Reading a dictionary takes tens of milliseconds.
    return this.#worker;
  }

  reading(name: string): EspeakWorker {
    if (this.#voice?.name !== name) this.#take(name);
    return this.#worker;
  }

  wordsOf(text: string): string[][] {
    const { ptr } = this.#worker.convert_to_phonemes(text, true);
    const memory = this.#module.HEAPU8;
    const ipa = Buffer.from(memory.buffer, ptr, memory.indexOf(0, ptr) - ptr).toString();
    const words = ipa.split(" ").filter((word) => word !== "" && word !== clauseMark);
    return words.map((word) => word.split("_").filter(isSound));
  }

  #take(name: string): void {
    this.#remember(this.#fresh);
    const status = this.#worker.set_voice(name);
    if (status !== 0) throw new Error(`eSpeak NG has no voice ${name} (status ${status})`);
    this.#voice = { name, memory: this.#module.HEAPU8.slice() };
  }

  #remember(memory: Uint8Array): void {
    const now = this.#module.HEAPU8;
    now.set(memory);
    now.fill(0, memory.length);
  }
}
