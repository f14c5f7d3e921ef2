import type { Token } from "../../contract/speech.ts";
import { toArpabet } from "../../contract/text/phonemes.ts";
import { toAscii } from "../../text/ascii.ts";
import type { FliteLibrary, Pointer } from "./library.ts";

const maxSpokenCharacters = 80;

/** A word in Flite's spelling. */
export interface FliteToken {
  readonly index: number;
  readonly name: string;
  readonly source: Token;
  /**
   * ARPAbet sounds of a word that Flite would pronounce incorrectly. The value is undefined for every other
   * word.
   */
  readonly phones: string | undefined;
}

/** Returns the words that Flite can pronounce, in Flite's spelling. */
export function readableTokens(tokens: readonly Token[]): FliteToken[] {
  return tokens.flatMap(readable);
}

/**
 * Splits a token into Flite's words. A written word can be several words for Flite ("€5" is "euros 5"). All
 * of these words get the same index.
 */
function readable(token: Token, index: number): FliteToken[] {
  const spoken = token.phonemes ? "word" : toAscii(token.text);
  return spoken
    .split(" ")
    .filter((name) => /[A-Za-z0-9$%&@+=#*<>/~^]/.test(name))
    .map((name, _at, names) => ({
      index,
      name: name.slice(0, maxSpokenCharacters),
      source: token,
      phones: token.phonemes ? toArpabet(token.phonemes) : letterPhones(name, names.length),
    }));
}

/**
 * Returns the sounds of the letter "A" in a token of several words ("A four"). Flite would read "A" as the
 * article.
 */
function letterPhones(name: string, words: number): string | undefined {
  return name === "A" && words > 1 ? "ey1" : undefined;
}

export function writeTokens(flite: FliteLibrary, utt: Pointer, tokens: readonly FliteToken[]): void {
  const relation = flite.createRelation(utt, "Token");
  tokens.forEach(({ index, name, source, phones }, place) => {
    const item = flite.append(relation, null);
    const last = tokens[place + 1]?.index !== index;
    flite.setString(item, "name", name);
    flite.setString(item, "whitespace", place === 0 ? "" : " ");
    flite.setString(item, "prepunctuation", toAscii(source.before));
    flite.setString(item, "punc", last ? toAscii(source.after) : "");
    flite.setInt(item, "file_pos", place);
    flite.setInt(item, "line_number", 0);
    flite.setInt(item, "written", index);
    if (phones !== undefined) flite.setString(item, "phones", phones);
    if (source.stretch !== 1) flite.setFloat(item, "local_duration_stretch", source.stretch);
  });
}
