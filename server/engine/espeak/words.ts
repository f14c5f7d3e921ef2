import type { Sounds } from "../../contract/speech.ts";

/** Splits plain text into words, and returns the sounds of each word. */
export type ReadWords = (text: string) => readonly Sounds[];

/**
 * The length of the longest word that is joined with its neighbor: dictionaries join only short words ("of
 * the").
 */
const longestJoinedCharacters = 6;
/** The size of the cache of words and pairs of words. The cache is emptied when it is full. */
const cacheSize = 20_000;

/**
 * Assigns the words of a reading to the tokens. A token gets as many words as eSpeak NG reads in the token
 * alone, minus one for each pair that eSpeak NG reads as a single word. The result is undefined if the sums
 * differ, or if a word could belong to a pair with either neighbor.
 */
export class TokenAligner {
  readonly #read: ReadWords;
  /** The number of sounds of each word of a text that was read alone, for one voice. */
  readonly #sizes = new Map<string, readonly number[]>();

  constructor(read: ReadWords) {
    this.#read = read;
  }

  /**
   * Reads texts together, and assigns the sounds to the texts' tokens.
   * @returns the sounds of each token; undefined if the sounds cannot be assigned.
   */
  align(texts: readonly string[]): Sounds[] | undefined {
    const words = this.#read(texts.join(" "));
    const sizes = texts.map((text) => this.#sizesOf(text));
    const expected = sizes.reduce((sum, own) => sum + own.length, 0);
    const joints = words.length < expected ? this.#joints(texts, sizes) : new Set<number>();
    const areApart = [...joints].every((place) => !joints.has(place + 1));
    return areApart && expected - joints.size === words.length
      ? assignWords(words, sizes, joints)
      : undefined;
  }

  /** Returns the tokens whose first word is read together with the last word of the previous token. */
  #joints(texts: readonly string[], sizes: readonly (readonly number[])[]): Set<number> {
    const joints = new Set<number>();
    for (let i = 1; i < texts.length; i++) {
      const [before = "", text = ""] = [texts[i - 1], texts[i]];
      if (Math.max(before.length, text.length) > longestJoinedCharacters) continue;
      const apart = (sizes[i - 1]?.length ?? 0) + (sizes[i]?.length ?? 0);
      if (this.#sizesOf(`${before} ${text}`).length < apart) joints.add(i);
    }
    return joints;
  }

  #sizesOf(text: string): readonly number[] {
    const cached = this.#sizes.get(text);
    if (cached) return cached;
    const sizes = this.#read(text).map(({ length }) => length);
    if (this.#sizes.size >= cacheSize) this.#sizes.clear();
    this.#sizes.set(text, sizes);
    return sizes;
  }
}

/**
 * Assigns the words to the tokens. The second token of a joined word gets as many sounds as eSpeak NG reads
 * in that token alone.
 */
function assignWords(
  words: readonly Sounds[],
  sizes: readonly (readonly number[])[],
  joints: ReadonlySet<number>,
): Sounds[] {
  const assigned: Sounds[] = [];
  let next = 0;
  for (const [i, own] of sizes.entries()) {
    const isJoined = joints.has(i);
    const count = own.length - (isJoined ? 1 : 0);
    const sounds = words.slice(next, next + count).flat();
    next += count;
    if (isJoined) sounds.unshift(...takeEnd(assigned, own[0] ?? 0));
    assigned.push(sounds);
  }
  return assigned;
}

/**
 * Removes sounds from the end of the last token, and returns the removed sounds. The token keeps at least its
 * first sound.
 */
function takeEnd(assigned: Sounds[], count: number): Sounds {
  const last = assigned.pop() ?? [];
  const at = Math.min(last.length, Math.max(1, last.length - count));
  assigned.push(last.slice(0, at));
  return last.slice(at);
}
