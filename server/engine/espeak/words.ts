import type { Sounds } from "../../contract/speech.ts";

/** Splits plain text into words with their sounds. */
export type ReadWords = (text: string) => readonly Sounds[];

/** Dictionaries join short words only ("of the"). */
const longestJoinedCharacters = 6;
/** A cache of words and pairs of words. Evicted entries are read again. */
const mostRemembered = 20_000;

/**
 * Finds which words of a reading belong to which token: as many as the token has when read alone, less one
 * for each pair that is read as one word. It never guesses: if the sums differ, or a word could be joined
 * with either neighbor, it returns undefined.
 */
export class TokenAligner {
  readonly #read: ReadWords;
  /** Number of sounds of each word that was read alone, for one voice. */
  readonly #sizes = new Map<string, readonly number[]>();

  constructor(read: ReadWords) {
    this.#read = read;
  }

  /** @returns the sounds of each token; undefined if they cannot be assigned. */
  align(texts: readonly string[]): Sounds[] | undefined {
    const words = this.#read(texts.join(" "));
    const sizes = texts.map((text) => this.#sizesOf(text));
    const expected = sizes.reduce((sum, own) => sum + own.length, 0);
    const joints = words.length < expected ? this.#joints(texts, sizes) : new Set<number>();
    const areApart = [...joints].every((place) => !joints.has(place + 1));
    return areApart && expected - joints.size === words.length ? deal(words, sizes, joints) : undefined;
  }

  /** Tokens whose first word is read as one with the last word of the previous token. */
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
    const known = this.#sizes.get(text);
    if (known) return known;
    const sizes = this.#read(text).map(({ length }) => length);
    if (this.#sizes.size >= mostRemembered) this.#sizes.clear();
    this.#sizes.set(text, sizes);
    return sizes;
  }
}

/** Assigns the words to the tokens. The later token of a joined word gets as many sounds as it has alone. */
function deal(
  words: readonly Sounds[],
  sizes: readonly (readonly number[])[],
  joints: ReadonlySet<number>,
): Sounds[] {
  const dealt: Sounds[] = [];
  let next = 0;
  for (const [i, own] of sizes.entries()) {
    const isJoined = joints.has(i);
    const count = own.length - (isJoined ? 1 : 0);
    const sounds = words.slice(next, next + count).flat();
    next += count;
    if (isJoined) sounds.unshift(...takeEnd(dealt, own[0] ?? 0));
    dealt.push(sounds);
  }
  return dealt;
}

/** Takes sounds from the last token, which keeps at least its first one. */
function takeEnd(dealt: Sounds[], count: number): Sounds {
  const last = dealt.pop() ?? [];
  const at = Math.min(last.length, Math.max(1, last.length - count));
  dealt.push(last.slice(0, at));
  return last.slice(at);
}
