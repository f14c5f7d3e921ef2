import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** Sizes of the graphs and tables of the codec, as `training/export.py` writes them into `codec.json`. */
export interface CodecTables {
  /** Hz. */
  readonly rate: number;
  readonly frameSamples: number;
  readonly coefficients: number;
  /** All-pass of the mel-like scale. */
  readonly warp: number;
  readonly speakers: readonly string[];
  /** Mean cepstrum of each speaker. */
  readonly means: readonly (readonly number[])[];
  /** Mean log F0 of each speaker, F0 in Hz. */
  readonly heights: readonly number[];
  /** Centres of each group of coefficients, one after the other. */
  readonly books: readonly (readonly number[])[];
  /** What a code of noise says, dB at 3 kHz; 0 is noise alone. */
  readonly noiseDb: readonly number[];
  /** Log F0 against the speaker's mean at a quarter and three quarters of a sound, for each code of melody. */
  readonly pitches: readonly number[];
  readonly heads: { readonly plan: readonly number[]; readonly codes: readonly number[] };
  /** Where each kind of code begins in its graph's table. */
  readonly rows: {
    readonly encoder: readonly number[];
    readonly plan: readonly number[];
    readonly codes: readonly number[];
  };
  readonly layers: { readonly plan: number; readonly codes: number };
  readonly attention: { readonly heads: number; readonly size: number; readonly window: number };
  /** Frames from a sound's begin and to its end that are told apart. */
  readonly places: number;
}

/** The part of `manifest.json` that loading needs; the rest says where the model comes from. */
interface Manifest {
  readonly kind: "arcana-mini";
  readonly sha256: Readonly<Record<string, string>>;
}

export interface ModelFiles {
  readonly codec: CodecTables;
  readonly graphs: { readonly encoder: Buffer; readonly plan: Buffer; readonly codes: Buffer };
}

/** @throws Error that says which file is missing or is not the one of the manifest. */
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
