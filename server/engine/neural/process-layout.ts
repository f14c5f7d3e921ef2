import type { NeuralModelSpec } from "./onnx/model-spec.ts";

/** How the processes of one model share the machine's cores. */
export interface ProcessLayout {
  /** Phrases that are spoken at once, each in a process with its own copy of the model. */
  readonly processes: number;
  /** For one phrase. */
  readonly threads: number;
  /** For one phrase while nothing else is spoken; a process more where they are more. */
  readonly threadsAlone: number;
}

/** The work of one phrase comes in pieces too small for more. */
const mostThreadsPerPhrase = 8;
const mostProcesses = 4;
/**
 * Cores of one process. A Kokoro process takes 570 MB, and a second thread makes it nearly half as fast again. Piper's
 * processes are small and gain little.
 */
const coresPerProcess: Readonly<Record<NeuralModelSpec["kind"], number>> = { piper: 1, kokoro: 2 };

/** @param wanted processes, where the administrator says so. */
export function processLayout(kind: NeuralModelSpec["kind"], cores: number, wanted?: number): ProcessLayout {
  const usual = Math.max(1, Math.min(mostProcesses, Math.floor(cores / coresPerProcess[kind])));
  const processes = wanted ?? usual;
  const threads = Math.min(mostThreadsPerPhrase, Math.max(1, Math.floor(cores / processes)));
  const alone = Math.min(cores, mostThreadsPerPhrase);
  // Kokoro's memory is not worth one process more for the moments when nothing else is spoken
  return { processes, threads, threadsAlone: kind === "kokoro" ? threads : alone };
}
