import { Worker } from "node:worker_threads";
import type { VocabularyOptions } from "../../text/planning/vocabulary.ts";
import type { LookUpResult } from "./protocol.ts";

export interface VocabularySettings {
  /** Folder with the administrator's Hunspell dictionaries. */
  readonly folder: string | undefined;
  readonly log: { warn(facts: object, message: string): void };
}

/** Texts that may wait for the thread. Further texts are not looked up. */
const maxWaiting = 64;
/** Words of one text that are reported. More words mean that the text is in another language. */
const maxFound = 200;
/** A dictionary that needs more memory ends the thread, not the server. */
const memoryMb = 1024;

/** Finds the out-of-vocabulary words of a text. The thread starts with the first text. */
export class Vocabulary {
  readonly #settings: VocabularySettings;
  readonly #waiting = new Map<number, (found: readonly string[]) => void>();
  #worker: Worker | undefined;
  #lastId = 0;
  #problem: string | undefined;

  constructor(settings: VocabularySettings) {
    this.#settings = settings;
  }

  /** Resolves without words if the language has no dictionary, the thread is overloaded, or it fails. */
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

  /** Each problem is logged once, because every text repeats it. */
  #tell(problem: string): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.#settings.log.warn({ problem }, "out-of-vocabulary words cannot be looked up");
  }
}
