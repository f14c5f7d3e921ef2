import { type Lexicon, lexiconForm } from "../contract/text/lexicon.ts";
import type { WrittenItem, WrittenToken } from "./tokens.ts";

/**
 * Gives words of the lexicon their sounds. Words that the text or the normalizer reads differently are
 * unchanged.
 */
export function* pronounce(items: Iterable<WrittenItem>, lexicon: Lexicon): Generator<WrittenItem> {
  for (const item of items) {
    yield item.kind === "token" ? { kind: "token", token: pronounced(item.token, lexicon) } : item;
  }
}

function pronounced(token: WrittenToken, lexicon: Lexicon): WrittenToken {
  if (token.phonemes || token.text !== token.written) return token;
  const phonemes = lexicon.get(lexiconForm(token.written));
  return phonemes ? { ...token, phonemes } : token;
}
