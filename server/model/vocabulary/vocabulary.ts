import { Worker } from "node:worker_threads";
import type { VocabularyOptions } from "../../text/planning/vocabulary.ts";
import type { LookUpResult } from "./protocol.ts";

export interface VocabularySettings {
  /** The folder of the Hunspell dictionaries that an administrator mounts. */
  readonly folder: string | undefined;
  readonly log: { warn(facts: object, message: string): void };
}

/** The number of texts that may wait for the worker thread. Words of further texts are not looked up. */
const maxWaiting = 64;
/**
 * The number of words of one text that are reported. More unknown words indicate a text in another language.
 */
const maxFound = 200;
/**
 * The memory limit of the worker thread. A dictionary that needs more memory ends the thread, and the server
 * continues.
 */
const memoryMb = 1024;

/** Finds the out-of-vocabulary words of texts. The worker thread starts with the first text. */
export class Vocabulary {
  readonly #settings: VocabularySettings;
  readonly #waiting = new Map<number, (found: readonly string[]) => void>();
  #worker: Worker | undefined;
  #lastId = 0;
  #problem: string | undefined;

  constructor(settings: VocabularySettings) {
    this.#settings = settings;
  }

  /**
   * Returns the out-of-vocabulary words of a text. The list is empty if the language has no dictionary, or if
   * the worker thread is overloaded or fails.
   */
  unknownWords(text: string, options: VocabularyOptions): Promise<readonly string[]> {
    if (this.#waiting.size >= maxWaiting) return Promise.resolve([]);
    return new Promise((resolve) => {
      const id = ++this.#lastId;
      this.#waiting.set(id, resolve);
      this.#worker ??= this.#start();
      this.#worker.postMessage({ id, text, options });
    });
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #start(): Worker {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), {
      workerData: { folder: this.#settings.folder, maxFound },
      resourceLimits: { maxOldGenerationSizeMb: memoryMb },
    });
    worker.unref();
    worker.on("message", ({ id, found, problem }: LookUpResult) => {
      if (problem !== undefined) this.#logProblem(problem);
      this.#waiting.get(id)?.(found);
      this.#waiting.delete(id);
    });
    worker.on("error", (error) => this.#logProblem(error.message));
    worker.on("exit", () => this.#workerEnded());
    return worker;
  }

  #workerEnded(): void {
    this.#worker = undefined;
    for (const resolve of this.#waiting.values()) resolve([]);
    this.#waiting.clear();
  }

  /** Logs a problem once, because every text would cause the same problem again. */
  #logProblem(problem: string): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.#settings.log.warn(
      { problem },
      "out-of-vocabulary words cannot be looked up; requests continue without them",
    );
  }
}
