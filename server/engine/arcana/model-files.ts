import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** Sizes of the codec's graphs and tables, as `training/export.py` writes them into `codec.json`. */
export interface CodecTables {
  /** Hz. */
  readonly rate: number;
  readonly frameSamples: number;
  readonly coefficients: number;
  /** All-pass coefficient of the mel-like scale. */
  readonly warp: number;
  readonly speakers: readonly string[];
  /** Mean cepstrum of each speaker. */
  readonly means: readonly (readonly number[])[];
  /** Mean log F0 of each speaker, with F0 in Hz. */
  readonly heights: readonly number[];
  /** Centers of the groups of coefficients, in order. */
  readonly books: readonly (readonly number[])[];
  /** Noise level of each code in dB at 3 kHz; 0 means noise only. */
  readonly noiseDb: readonly number[];
  /**
   * Log F0 relative to the speaker's mean at one quarter and three quarters of a sound, for each code of
   * melody.
   */
  readonly pitches: readonly number[];
  readonly heads: { readonly plan: readonly number[]; readonly codes: readonly number[] };
  /** Index of the first code of each kind in its graph's table. */
  readonly rows: {
    readonly encoder: readonly number[];
    readonly plan: readonly number[];
    readonly codes: readonly number[];
  };
  readonly layers: { readonly plan: number; readonly codes: number };
  readonly attention: { readonly heads: number; readonly size: number; readonly window: number };
  /** Highest distance in frames from the start and to the end of a sound that the model distinguishes. */
  readonly places: number;
}

/** The part of `manifest.json` that loading needs. The rest documents the model's origin. */
interface Manifest {
  readonly kind: "arcana-mini";
  readonly sha256: Readonly<Record<string, string>>;
}

export interface ModelFiles {
  readonly codec: CodecTables;
  readonly graphs: { readonly encoder: Buffer; readonly plan: Buffer; readonly codes: Buffer };
}

/** @throws Error that names the file that is missing or does not match the manifest. */
export async function readModel(folder: string): Promise<ModelFiles> {
  const manifest = JSON.parse((await readFile(join(folder, "manifest.json"))).toString()) as Manifest;
  if (manifest.kind !== "arcana-mini") throw new Error(`manifest.json: unknown kind ${manifest.kind}`);
  const checked = async (name: string): Promise<Buffer> => {
    const file = await readFile(join(folder, name));
    const sum = createHash("sha256").update(file).digest("hex");
    if (sum !== manifest.sha256[name]) {
      throw new Error(`${name}: its sha256 is ${sum}, not ${manifest.sha256[name]}`);
    }
    return file;
  };
  const [codec, encoder, plan, codes] = (await Promise.all(
    ["codec.json", "encoder.onnx", "plan.onnx", "codes.onnx"].map(checked),
  )) as [Buffer, Buffer, Buffer, Buffer];
  return { codec: JSON.parse(codec.toString()) as CodecTables, graphs: { encoder, plan, codes } };
}
