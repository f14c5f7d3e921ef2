import { Worker } from "node:worker_threads";
import type { VocabularyOptions } from "../../text/planning/vocabulary.ts";
import type { LookUpResult } from "./protocol.ts";

export interface VocabularySettings {
  /** Folder with Hunspell dictionaries of the administrator's. */
  readonly folder: string | undefined;
  readonly log: { warn(facts: object, message: string): void };
}

/** Texts that may wait for the thread; more are not looked at. */
const maxWaiting = 64;
/** Words of one text that are told; more says that the text is of another language. */
const maxFound = 200;
/** A dictionary that takes more than this ends the thread, not the server. */
const memoryMb = 1024;

/** Finds the words of a text that no dictionary has. The thread begins with the first text. */
export class Vocabulary {
  readonly #settings: VocabularySettings;
  readonly #waiting = new Map<number, (found: readonly string[]) => void>();
  #worker: Worker | undefined;
  #lastId = 0;
  #problem: string | undefined;

  constructor(settings: VocabularySettings) {
    this.#settings = settings;
  }

  /** Nothing where the language has no dictionary, the thread is busy with too many, or it fails. */
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
      if (problem !== undefined) this.#tell(problem);
      this.#waiting.get(id)?.(found);
      this.#waiting.delete(id);
    });
    worker.on("error", (error) => this.#tell(error.message));
    worker.on("exit", () => this.#ended());
    return worker;
  }

  #ended(): void {
    this.#worker = undefined;
    for (const resolve of this.#waiting.values()) resolve([]);
    this.#waiting.clear();
  }

  /** Each problem once: it comes back with every text. */
  #tell(problem: string): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.#settings.log.warn({ problem }, "out-of-vocabulary words cannot be looked up");
  }
}
