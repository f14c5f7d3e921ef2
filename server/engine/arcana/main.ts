/**
 * The engine process of arcana-mini. `process-pool.ts` starts the process, with the folder of the model as
 * first argument.
 */
import { type FliteLibrary, loadFlite } from "../flite/library.ts";
import { reportStartFailure, serveJobs } from "../runtime/serve-jobs.ts";
import { readModel } from "./model-files.ts";
import { arcanaSynthesizer } from "./synthesize.ts";

const folder = process.argv[2] ?? "";
const parts = await tryLoad();
if (parts) await serveJobs(arcanaSynthesizer({ ...parts, random: Math.random }));

async function tryLoad() {
  try {
    const files = await readModel(folder);
    // Only this process loads ONNX Runtime, because a fault in its native code ends the process.
    const { MiniGenerator } = await import("./mini.ts");
    return { flite: loadReader(), generator: await MiniGenerator.load(files), codec: files.codec };
  } catch (error) {
    reportStartFailure(`arcana-mini cannot start: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
    return undefined;
  }
}

function loadReader(): FliteLibrary {
  try {
    return loadFlite();
  } catch (cause) {
    throw new Error(
      `the library of Flite, which reads the texts of arcana-mini, cannot be loaded (${String(cause)}). Install the library, on Debian: apt-get install libflite1`,
      { cause },
    );
  }
}
