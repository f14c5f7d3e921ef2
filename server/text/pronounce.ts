import { type Lexicon, lexiconForm } from "../contract/text/lexicon.ts";
import type { WrittenItem, WrittenToken } from "./tokens.ts";

/**
 * Adds the sounds of the lexicon to words. Words with their own phonemes, and words that the normalizer has
 * expanded, stay unchanged.
 */
export function* pronounce(items: Iterable<WrittenItem>, lexicon: Lexicon): Generator<WrittenItem> {
  for (const item of items) {
    yield item.kind === "token" ? { kind: "token", token: withSounds(item.token, lexicon) } : item;
  }
}

function withSounds(token: WrittenToken, lexicon: Lexicon): WrittenToken {
  if (token.phonemes || token.text !== token.written) return token;
  const phonemes = lexicon.get(lexiconForm(token.written));
  return phonemes ? { ...token, phonemes } : token;
}
