/**
 * The eSpeak NG engine process. `process-pool.ts` starts this process. No other process runs code of the GPL
 * package.
 */
import { reportStartFailure, serveJobs } from "../runtime/serve-jobs.ts";
import { withinSpeedRange } from "../runtime/speed-range.ts";
import { type Espeak, loadEspeak } from "./library.ts";
import { espeakReader } from "./read.ts";
import { espeakSpeedRange, espeakSynthesizer } from "./synthesize.ts";

const espeak = await tryLoad();
if (espeak) {
  await serveJobs(withinSpeedRange(espeakSynthesizer(espeak), espeakSpeedRange), espeakReader(espeak));
}

async function tryLoad(): Promise<Espeak | undefined> {
  try {
    return await loadEspeak();
  } catch (error) {
    reportStartFailure(
      `eSpeak NG cannot be loaded (${String(error)}). Install its package: npm install @echogarden/espeak-ng-emscripten`,
    );
    process.exitCode = 1;
    return undefined;
  }
}
