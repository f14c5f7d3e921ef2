/**
 * Looks up words in a separate thread, because loading a dictionary takes seconds, and no stream should wait
 * for it.
 */
import { parentPort, workerData } from "node:worker_threads";
import { isKnown, wordsToLookUp } from "../../text/planning/vocabulary.ts";
import { Dictionaries } from "./dictionaries.ts";
import type { LookUpRequest, LookUpResult } from "./protocol.ts";

const { folder, maxFound } = workerData as { readonly folder: string | undefined; readonly maxFound: number };
const dictionaries = new Dictionaries(folder);

async function lookUp({ text, options }: LookUpRequest): Promise<readonly string[]> {
  const dictionary = await dictionaries.of(options.language);
  if (!dictionary) return [];
  const found: string[] = [];
  for (const word of wordsToLookUp(text, options)) {
    if (!isKnown(word, dictionary)) found.push(word);
    if (found.length >= maxFound) break;
  }
  return found;
}

async function answer(question: LookUpRequest): Promise<LookUpResult> {
  try {
    return { id: question.id, found: await lookUp(question) };
  } catch (error) {
    return { id: question.id, found: [], problem: (error as Error).message };
  }
}

parentPort?.on("message", async (question: LookUpRequest) => parentPort?.postMessage(await answer(question)));
