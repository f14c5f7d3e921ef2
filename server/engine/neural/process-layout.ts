import type { NeuralModelSpec } from "./onnx/model-spec.ts";

/** The division of the machine's cores among the processes of one model. */
export interface ProcessLayout {
  /** The number of processes, each with its own copy of the model. As many phrases run at the same time. */
  readonly processes: number;
  /** The number of threads for one phrase. */
  readonly threads: number;
  /**
   * The number of threads for a phrase that runs alone. If the number is higher than `threads`, an additional
   * process uses these threads.
   */
  readonly threadsAlone: number;
}

/** The limit for threads: the work items of one phrase are too small for more threads. */
const mostThreadsPerPhrase = 8;
const mostProcesses = 4;
/**
 * The number of cores for each process. A Kokoro process uses 490 MB, and a second thread makes it nearly 1.5
 * times as fast. Piper's processes are small and gain little from threads.
 */
const coresPerProcess: Readonly<Record<NeuralModelSpec["kind"], number>> = { piper: 1, kokoro: 2 };

/**
 * Calculates the layout for a model.
 * @param requested the number of processes that the administrator has set.
 */
export function processLayout(
  kind: NeuralModelSpec["kind"],
  cores: number,
  requested?: number,
): ProcessLayout {
  const byCores = Math.max(1, Math.min(mostProcesses, Math.floor(cores / coresPerProcess[kind])));
  const processes = requested ?? byCores;
  const threads = Math.min(mostThreadsPerPhrase, Math.max(1, Math.floor(cores / processes)));
  const alone = Math.min(cores, mostThreadsPerPhrase);
  // Kokoro gets no additional process: its memory use outweighs the gain while a phrase runs alone.
  return { processes, threads, threadsAlone: kind === "kokoro" ? threads : alone };
}
