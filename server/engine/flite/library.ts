/**
 * Calls Flite 2.2 (Debian `libflite1`) through FFI. Only the engine process loads the library, because a
 * fault in native code ends the process. Flite keeps the *pointer* of every feature name, so the names are
 * stored in memory that is never freed. With temporary strings, Flite would not find its features, for
 * example the streaming information.
 */
import koffi, { type LibraryHandle } from "koffi";

export const voiceLibraries = {
  awb: "cmu_us_awb",
  rms: "cmu_us_rms",
  slt: "cmu_us_slt",
  kal16: "cmu_us_kal16",
} as const;

/** A C pointer; null is NULL. */
export type Pointer = bigint | null;

const wave = koffi.struct({
  type: "void *",
  sampleRate: "int",
  numSamples: "int",
  numChannels: "int",
  samples: "void *",
});
const streamingInfo = koffi.struct({
  minBuffSize: "int",
  callback: "void *",
  utterance: "void *",
  item: "void *",
  userData: "void *",
});
const utterance = koffi.struct({
  features: "void *",
  ffunctions: "void *",
  relations: "void *",
  context: "void *",
});

/**
 * Receives the audio of an utterance piece by piece.
 * @returns the minimum number of samples of the next piece; undefined stops the synthesis.
 */
export type OnAudio = (samples: () => Int16Array, rate: number) => number | undefined;

export interface FliteLibrary extends ReturnType<typeof bind> {
  voice(name: keyof typeof voiceLibraries): Pointer;
}

/**
 * References to handles and types. Without these references, the garbage collector would free the objects,
 * and koffi would unload the library and the data of the voice.
 */
const kept: object[] = [];

function load(name: string, options: { global: boolean } = { global: false }): LibraryHandle {
  const handle = koffi.load(name, options);
  kept.push(handle);
  return handle;
}

/**
 * Loads Flite.
 * @throws Error if the library is not installed.
 */
export function loadFlite(): FliteLibrary {
  const library = load("libflite.so.1");
  load("libflite_usenglish.so.1", { global: true });
  load("libflite_cmulex.so.1", { global: true });
  library.func("int flite_init()")();
  const voices = new Map<string, Pointer>();
  const voice = (name: keyof typeof voiceLibraries): Pointer => {
    const existing = voices.get(name);
    if (existing) return existing;
    const created = load(`libflite_${voiceLibraries[name]}.so.1`).func(
      `void *register_${voiceLibraries[name]}(const char *)`,
    )(null) as Pointer;
    voices.set(name, created);
    return created;
  };
  return { ...bind(library), voice };
}

function bind(library: LibraryHandle) {
  const c = (declaration: string) => library.func(declaration);
  const keep = permanentStrings();
  const setString = c("void item_set_string(void *, void *, const char *)");
  const setInt = c("void item_set_int(void *, void *, int)");
  const setFloat = c("void item_set_float(void *, void *, float)");
  const featFloat = c("void feat_set_float(void *, void *, float)");
  const featSet = c("void feat_set(void *, void *, void *)");
  const relationCreate = c("void *utt_relation_create(void *, void *)");
  const newStreamingInfo = c("void *new_audio_streaming_info()");
  const streamingValue = c("void *audio_streaming_info_val(void *)");
  const featuresOf = (utt: Pointer): Pointer => koffi.decode(utt, utterance).features;
  const streamType = koffi.pointer(koffi.proto("int audio_stream(void *, int, int, int, void *)"));
  kept.push(streamType);
  const stageType = koffi.pointer(koffi.proto("void *synthesis_stage(void *)"));
  kept.push(stageType);
  const emptyStage = koffi.register((utt: Pointer): Pointer => utt, stageType);
  const stageValue = c("void *uttfunc_val(void *)");
  let onPiece: OnAudio = () => undefined;
  const callback = koffi.register(
    (waveAt: Pointer, start: number, size: number, _last: number, info: Pointer): number => {
      const { samples, sampleRate } = koffi.decode(waveAt, wave);
      const copySamples = () => koffi.decode(samples, start * 2, "int16_t", size) as Int16Array;
      const least = onPiece(copySamples, sampleRate);
      // Flite reads the first field of the structure before each piece.
      if (least !== undefined) koffi.encode(info, "int", least);
      return least === undefined ? -1 : 0;
    },
    streamType,
  );
  return {
    newUtterance: c("void *new_utterance()") as () => Pointer,
    deleteUtterance: c("void delete_utterance(void *)") as (utt: Pointer) => void,
    init: c("void *utt_init(void *, void *)") as (utt: Pointer, voice: Pointer) => Pointer,
    synthTokens: c("void *utt_synth_tokens(void *)") as (utt: Pointer) => Pointer,
    createRelation: (utt: Pointer, name: string) => relationCreate(utt, keep(name)) as Pointer,
    relation: c("void *utt_relation(void *, const char *)") as (utt: Pointer, name: string) => Pointer,
    append: c("void *relation_append(void *, void *)") as (relation: Pointer, item: Pointer) => Pointer,
    head: c("void *relation_head(void *)") as (relation: Pointer) => Pointer,
    next: c("void *item_next(const void *)") as (item: Pointer) => Pointer,
    parent: c("void *item_parent(const void *)") as (item: Pointer) => Pointer,
    as: c("void *item_as(const void *, const char *)") as (item: Pointer, relation: string) => Pointer,
    stringOf: c("const char *item_feat_string(const void *, const char *)") as (
      item: Pointer,
      name: string,
    ) => string,
    intOf: c("int item_feat_int(const void *, const char *)") as (item: Pointer, name: string) => number,
    floatAt: c("float ffeature_float(const void *, const char *)") as (item: Pointer, path: string) => number,
    textAt: c("const char *ffeature_string(const void *, const char *)") as (
      item: Pointer,
      path: string,
    ) => string,
    setString: (item: Pointer, name: string, value: string): void => setString(item, keep(name), value),
    setInt: (item: Pointer, name: string, value: number): void => setInt(item, keep(name), value),
    setFloat: (item: Pointer, name: string, value: number): void => setFloat(item, keep(name), value),
    setFeature: (utt: Pointer, name: string, value: number): void =>
      featFloat(featuresOf(utt), keep(name), value),
    /** Streams this utterance to `onAudio`. The first piece of audio is as short as Flite allows. */
    stream(utt: Pointer, onAudio: OnAudio): void {
      const info = newStreamingInfo() as Pointer;
      onPiece = onAudio;
      koffi.encode(info, streamingInfo, {
        minBuffSize: 0,
        callback,
        utterance: null,
        item: null,
        userData: null,
      });
      featSet(featuresOf(utt), keep("streaming_info"), streamingValue(info));
    },
    /** Skips one stage of the synthesis of this utterance. `stage` is the name of the stage's feature. */
    skip: (utt: Pointer, stage: string): void =>
      featSet(featuresOf(utt), keep(stage), stageValue(emptyStage)),
    /** Seeds the C function `rand`, which generates the noise of Flite's mixed excitation. */
    seedNoise: load("libc.so.6").func("void srand(uint)") as (seed: number) => void,
  };
}

function permanentStrings(): (text: string) => Pointer {
  const existing = new Map<string, Pointer>();
  return (text) => {
    const stored = existing.get(text);
    if (stored) return stored;
    const bytes = Buffer.from(`${text}\0`);
    const created = koffi.alloc("char", bytes.length) as Pointer;
    koffi.encode(created, "char", [...bytes], bytes.length);
    existing.set(text, created);
    return created;
  };
}
