/** The Flite engine process. Its owner is `process-pool.ts`. */
import { reportStartFailure, serveJobs } from "../runtime/serve-jobs.ts";
import { withinReach } from "../runtime/speed-range.ts";
import { type FliteLibrary, loadFlite } from "./library.ts";
import { fliteReach, fliteSynthesizer } from "./synthesize.ts";

const flite = tryLoad();
if (flite) await serveJobs(withinReach(fliteSynthesizer(flite), fliteReach));

function tryLoad(): FliteLibrary | undefined {
  try {
    return loadFlite();
  } catch (error) {
    reportStartFailure(
      `Flite's library cannot be loaded (${String(error)}). Install it, on Debian: apt-get install libflite1`,
    );
    process.exitCode = 1;
    return undefined;
  }
}
