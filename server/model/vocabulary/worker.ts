/**
 * The worker thread that looks up words. A dictionary takes seconds to load, and would block all streams if
 * the main thread loaded it.
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

async function respond(request: LookUpRequest): Promise<LookUpResult> {
  try {
    return { id: request.id, found: await lookUp(request) };
  } catch (error) {
    return { id: request.id, found: [], problem: (error as Error).message };
  }
}

parentPort?.on("message", async (request: LookUpRequest) => parentPort?.postMessage(await respond(request)));
