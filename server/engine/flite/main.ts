/** The Flite engine process, which `process-pool.ts` starts. */
import { reportStartFailure, serveJobs } from "../runtime/serve-jobs.ts";
import { withinSpeedRange } from "../runtime/speed-range.ts";
import { type FliteLibrary, loadFlite } from "./library.ts";
import { fliteSpeedRange, fliteSynthesizer } from "./synthesize.ts";

const flite = tryLoad();
if (flite) await serveJobs(withinSpeedRange(fliteSynthesizer(flite), fliteSpeedRange));

function tryLoad(): FliteLibrary | undefined {
  try {
    return loadFlite();
  } catch (error) {
    reportStartFailure(
      `The library of Flite cannot be loaded (${String(error)}). Install the library, on Debian: apt-get install libflite1`,
    );
    process.exitCode = 1;
    return undefined;
  }
}
