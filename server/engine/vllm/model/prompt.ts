import { Tokenizer } from "@huggingface/tokenizers";
import type { TokensManifest } from "./manifest.ts";

/** The token IDs of a prompt. */
export type Tokenize = (voice: string, text: string) => readonly number[];

interface AddedToken {
  readonly id: number;
  readonly content: string;
}

/**
 * Special tokens come only from the manifest. The tokenizer does not recognize any: `<|eot_id|>` in a
 * client's text becomes about nine plain characters.
 * @param json a `tokenizer.json`.
 */
export function createTokenize(json: string, { template, pre, post }: TokensManifest["prompt"]): Tokenize {
  const { added_tokens: added = [], ...plain } = parse(json);
  const special = new Set(added.map(({ id }) => id));
  const tokenizer = new Tokenizer({ ...plain, added_tokens: [] }, {});
  return (voice, text) => {
    const values: Readonly<Record<string, string>> = { voice, text };
    // One replacement for all, so that a text with {voice} stays unchanged.
    const written = template.replaceAll(/\{(voice|text)\}/gu, (_, name: string) => values[name] ?? "");
    const { ids }: { ids: readonly (number | undefined)[] } = tokenizer.encode(written, {
      add_special_tokens: false,
    });
    const plainIds = ids.filter((id) => id !== undefined && !special.has(id)) as number[];
    if (plainIds.length < ids.length) {
      throw new Error("the tokenizer reads plain text as a special token, or not at all");
    }
    return [...pre, ...plainIds, ...post];
  };
}

function parse(json: string): object & { readonly added_tokens?: readonly AddedToken[] } {
  try {
    return JSON.parse(json) as object;
  } catch (cause) {
    throw new Error(`tokenizer.json is not JSON: ${(cause as Error).message}`, { cause });
  }
}
