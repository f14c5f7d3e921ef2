/** The eSpeak NG engine process. Its owner is `process-pool.ts`; nothing of the GPL package runs anywhere else. */
import { reportStartFailure, serveJobs } from "../serve-jobs.ts";
import { type EspeakWorker, loadEspeak } from "./library.ts";
import { espeakSynthesizer } from "./synthesize.ts";

const espeak = await tryLoad();
if (espeak) serveJobs(espeakSynthesizer(espeak));

async function tryLoad(): Promise<EspeakWorker | undefined> {
  try {
    return await loadEspeak();
  } catch (error) {
    reportStartFailure(
      `eSpeak NG cannot be loaded (${String(error)}). Install it: npm install @echogarden/espeak-ng-emscripten`,
    );
    process.exitCode = 1;
    return undefined;
  }
}
