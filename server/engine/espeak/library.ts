/** eSpeak NG as WebAssembly (npm, GPL-3.0): loaded by the engine process alone, and optional there. */
const packageName = "@echogarden/espeak-ng-emscripten";

export interface EspeakEvent {
  readonly type: string;
  /** Milliseconds from the start of the synthesis. */
  readonly audio_position: number;
  readonly id?: string | number;
}

export interface EspeakWorker {
  set_voice(name: string): number | undefined;
  set_rate(wordsPerMinute: number): void;
  set_pitch(pitch: number): void;
  get_samplerate(): number;
  /** The listener stops the synthesis by returning true. */
  synthesize(ssml: string, listener: (audio: Int16Array, events: readonly EspeakEvent[]) => boolean): void;
}

/** @throws Error when the package is not installed. */
export async function loadEspeak(): Promise<EspeakWorker> {
  const { default: load } = (await import(packageName)) as {
    default: () => Promise<{ eSpeakNGWorker: new () => EspeakWorker }>;
  };
  const module = await load();
  return await new module.eSpeakNGWorker();
}
