import { Tokenizer } from "@huggingface/tokenizers";
import type { TokensManifest } from "./manifest.ts";

/** Creates the token IDs of a prompt. */
export type Tokenize = (voice: string, text: string) => readonly number[];

interface AddedToken {
  readonly id: number;
  readonly content: string;
}

/**
 * Creates a function that converts a text to tokens. Only the manifest adds special tokens: the tokenizer
 * treats `<|eot_id|>` in a client's text as plain characters.
 * @param json the content of `tokenizer.json`.
 */
export function createTokenize(json: string, { template, pre, post }: TokensManifest["prompt"]): Tokenize {
  const { added_tokens: added = [], ...plain } = parse(json);
  const special = new Set(added.map(({ id }) => id));
  const tokenizer = new Tokenizer({ ...plain, added_tokens: [] }, {});
  return (voice, text) => {
    const values: Readonly<Record<string, string>> = { voice, text };
    // A single replacement of both names leaves `{voice}` in a client's text unchanged.
    const promptText = template.replaceAll(/\{(voice|text)\}/gu, (_, name: string) => values[name] ?? "");
    const { ids }: { ids: readonly (number | undefined)[] } = tokenizer.encode(promptText, {
      add_special_tokens: false,
    });
    const plainIds = ids.filter((id) => id !== undefined && !special.has(id)) as number[];
    if (plainIds.length < ids.length) {
      throw new Error("tokenizer.json: the tokenizer converts plain text to special or unknown tokens");
    }
    return [...pre, ...plainIds, ...post];
  };
}

function parse(json: string): object & { readonly added_tokens?: readonly AddedToken[] } {
  try {
    return JSON.parse(json) as object;
  } catch (cause) {
    throw new Error(`tokenizer.json: is not JSON: ${(cause as Error).message}`, { cause });
  }
}
