/** The Flite engine process. Its owner is `process-pool.ts`. */
import { reportStartFailure, serveJobs } from "../serve-jobs.ts";
import { type FliteLibrary, loadFlite } from "./library.ts";
import { fliteSynthesizer } from "./synthesize.ts";

const flite = tryLoad();
if (flite) serveJobs(fliteSynthesizer(flite));

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
