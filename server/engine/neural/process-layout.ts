import type { NeuralModelSpec } from "./onnx/model-spec.ts";

/** How the processes of one model share the machine's cores. */
export interface ProcessLayout {
  /** Phrases that run at the same time, each in a process with its own copy of the model. */
  readonly processes: number;
  /** Threads for one phrase. */
  readonly threads: number;
  /**
   * Threads for one phrase while no other phrase runs. One more process uses them if they are more than
   * `threads`.
   */
  readonly threadsAlone: number;
}

/** The work items of one phrase are too small for more threads. */
const mostThreadsPerPhrase = 8;
const mostProcesses = 4;
/**
 * Cores of one process. A Kokoro process takes 570 MB, and a second thread makes it nearly half as fast again. Piper's
 * processes are small and gain little.
 */
const coresPerProcess: Readonly<Record<NeuralModelSpec["kind"], number>> = { piper: 1, kokoro: 2 };

/** @param wanted number of processes that the administrator has set. */
export function processLayout(kind: NeuralModelSpec["kind"], cores: number, wanted?: number): ProcessLayout {
  const usual = Math.max(1, Math.min(mostProcesses, Math.floor(cores / coresPerProcess[kind])));
  const processes = wanted ?? usual;
  const threads = Math.min(mostThreadsPerPhrase, Math.max(1, Math.floor(cores / processes)));
  const alone = Math.min(cores, mostThreadsPerPhrase);
  // The memory of one more Kokoro process is too expensive for moments with a single phrase.
  return { processes, threads, threadsAlone: kind === "kokoro" ? threads : alone };
}
