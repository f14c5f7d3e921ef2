import { KokoroModel } from "./kokoro.ts";
import { type KokoroGraph, SplitGraph, WholeGraph } from "./kokoro-graphs.ts";
import { checkFile, readChecked } from "./onnx/checked-file.ts";
import { isExactForInt8 } from "./onnx/integer-kernels.ts";
import type { KokoroSpec, RewrittenGraph, SplitFiles } from "./onnx/model-spec.ts";
import { decodeMeans, type VoiceMeans } from "./voice-means.ts";

interface LoadedKokoro {
  readonly model: KokoroModel;
  /** The variant of the graph in use, with the reason if it is not the fastest variant. */
  readonly variant: string;
}

/**
 * Loads the fastest variant of Kokoro whose files are complete and which the CPU computes exactly.
 * @throws Error if no variant can be loaded.
 */
export async function loadKokoro(spec: KokoroSpec): Promise<LoadedKokoro> {
  const { rewritten } = spec;
  if (!rewritten) return loadOriginal(spec, "original graph");
  if (rewritten.weights === "int8" && !(await isExactForInt8()))
    return loadOriginal(spec, "original graph: this CPU does not multiply 8-bit integers exactly");
  const variant = `rewritten graph, ${rewritten.weights}`;
  const split = await trySplit(spec, rewritten.windows);
  if (typeof split !== "string") return { model: split, variant: `${variant}, with windows` };
  const note = split === "" ? "" : `; ${split}`;
  return loadRewritten(spec, rewritten, `${variant}${note}`);
}

async function loadOriginal(spec: KokoroSpec, variant: string): Promise<LoadedKokoro> {
  return { model: await loadWhole(spec, { path: spec.model, sha256: spec.sha256 }), variant };
}

async function loadRewritten(
  spec: KokoroSpec,
  { model, sha256 }: RewrittenGraph,
  variant: string,
): Promise<LoadedKokoro> {
  let file: Buffer;
  try {
    file = await readChecked({ path: model, sha256 });
  } catch (error) {
    return loadOriginal(spec, `original graph: the rewritten graph cannot be used: ${textOf(error)}`);
  }
  return { model: await KokoroModel.load(spec, await WholeGraph.load(file, spec.runtime)), variant };
}

async function loadWhole(spec: KokoroSpec, file: { path: string; sha256: string }): Promise<KokoroModel> {
  return KokoroModel.load(spec, await WholeGraph.load(await readChecked(file), spec.runtime));
}

/** Loads the split graph. Returns the reason if its files cannot be used, or "" if the model has none. */
async function trySplit(spec: KokoroSpec, files: SplitFiles | undefined): Promise<KokoroModel | string> {
  if (!files) return "";
  let graph: KokoroGraph | undefined;
  try {
    const means = await readMeans(files);
    await checkFile(files.front);
    await checkFile(files.generator);
    const paths = { front: files.front.path, generator: files.generator.path };
    graph = await SplitGraph.load(paths, files.channels, spec.runtime);
    return await KokoroModel.load(spec, graph, means);
  } catch (error) {
    await graph?.close();
    return `its windows cannot be used: ${textOf(error)}`;
  }
}

/** Reads the means of each speaker. */
async function readMeans({ means, rows, channels }: SplitFiles): Promise<(VoiceMeans | undefined)[]> {
  const bytes = await readChecked(means);
  return rows.map((row) => (row < 0 ? undefined : decodeMeans(bytes, row, channels)));
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
