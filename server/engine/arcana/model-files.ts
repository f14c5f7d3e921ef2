import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * The sizes of the codec's graphs and tables. `tools/arcana-training/export.py` writes them into
 * `codec.json`.
 */
export interface CodecTables {
  /** The sampling rate in Hz. */
  readonly rate: number;
  readonly frameSamples: number;
  readonly coefficients: number;
  /** The all-pass coefficient of the mel-like scale. */
  readonly warp: number;
  readonly speakers: readonly string[];
  /** The mean cepstrum of each speaker. */
  readonly means: readonly (readonly number[])[];
  /** The mean log F0 of each speaker, with F0 in Hz. */
  readonly heights: readonly number[];
  /** The codebooks: for each group of coefficients, the coefficients of every code. */
  readonly books: readonly (readonly number[])[];
  /** The noise level of each code in dB at 3 kHz. The value 0 means that the frame contains only noise. */
  readonly noiseDb: readonly number[];
  /**
   * The log F0 relative to the speaker's mean at one quarter and three quarters of a sound, for each melody
   * code.
   */
  readonly pitches: readonly number[];
  readonly heads: { readonly plan: readonly number[]; readonly codes: readonly number[] };
  /** The index of the first code of each kind in the table of each graph. */
  readonly rows: {
    readonly encoder: readonly number[];
    readonly plan: readonly number[];
    readonly codes: readonly number[];
  };
  readonly layers: { readonly plan: number; readonly codes: number };
  readonly attention: { readonly heads: number; readonly size: number; readonly window: number };
  /** The highest distance that the model distinguishes, in frames, from the start and the end of a sound. */
  readonly places: number;
}

/**
 * The part of `manifest.json` that is needed to load the model. The other fields document the model's origin.
 */
interface Manifest {
  readonly kind: "arcana-mini";
  readonly sha256: Readonly<Record<string, string>>;
}

export interface ModelFiles {
  readonly codec: CodecTables;
  readonly graphs: { readonly encoder: Buffer; readonly plan: Buffer; readonly codes: Buffer };
}

/**
 * Reads the files of the model.
 * @throws Error that names a file that is missing or does not match the manifest.
 */
export async function readModel(folder: string): Promise<ModelFiles> {
  const manifest = JSON.parse((await readFile(join(folder, "manifest.json"))).toString()) as Manifest;
  if (manifest.kind !== "arcana-mini")
    throw new Error(`manifest.json: kind is "${manifest.kind}" and must be "arcana-mini"`);
  const checked = async (name: string): Promise<Buffer> => {
    const file = await readFile(join(folder, name));
    const sum = createHash("sha256").update(file).digest("hex");
    if (sum !== manifest.sha256[name]) {
      throw new Error(
        `${name}: the sha256 of the file is ${sum}; manifest.json has ${manifest.sha256[name]}`,
      );
    }
    return file;
  };
  const [codec, encoder, plan, codes] = (await Promise.all(
    ["codec.json", "encoder.onnx", "plan.onnx", "codes.onnx"].map(checked),
  )) as [Buffer, Buffer, Buffer, Buffer];
  return { codec: JSON.parse(codec.toString()) as CodecTables, graphs: { encoder, plan, codes } };
}
