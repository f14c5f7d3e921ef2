import { Tokenizer } from "@huggingface/tokenizers";
import type { ModelVoice, TokensManifest } from "./manifest-schema.ts";

/** Creates the token IDs of a prompt. */
export type Tokenize = (voice: ModelVoice, text: string) => readonly number[];

interface AddedToken {
  readonly id: number;
  readonly content: string;
}

/**
 * Creates a function that converts a text to tokens. Only the manifest adds special tokens: the tokenizer
 * treats `<|eot_id|>` in a client's text as plain characters.
 * @param json the content of `tokenizer.json`.
 */
export function createTokenize(
  json: string,
  { prompt, codec }: Pick<TokensManifest, "prompt" | "codec">,
): Tokenize {
  const { added_tokens: added = [], ...plain } = parse(json);
  const special = new Set(added.map(({ id }) => id));
  const tokenizer = new Tokenizer({ ...plain, added_tokens: [] }, {});
  const encode = (voice: ModelVoice, text: string): number[] => {
    const { ids }: { ids: readonly (number | undefined)[] } = tokenizer.encode(
      fillTemplate(prompt.template, voice, text),
      {
        add_special_tokens: false,
      },
    );
    const plainIds = ids.filter((id) => id !== undefined && !special.has(id)) as number[];
    if (plainIds.length < ids.length) {
      throw new Error("tokenizer.json: the tokenizer converts plain text to special or unknown tokens");
    }
    return [...prompt.pre, ...plainIds, ...prompt.post];
  };
  return (voice, text) => {
    const { reference } = voice;
    if (!reference || !prompt.reference) return encode(voice, text);
    const codes = codeTokens(reference.codes, codec);
    if (prompt.reference.placement === "continuation") return [...encode(voice, text), ...codes];
    const turn = [...encode(voice, reference.text), ...codes, ...(prompt.reference.end ?? [])];
    return [...turn, ...encode(voice, text)];
  };
}

/**
 * Fills the names of a template. All names are replaced in one step, so that `{voice}` in a client's text
 * stays unchanged.
 */
function fillTemplate(
  template: string,
  { name, description = "", reference }: ModelVoice,
  text: string,
): string {
  const values: Readonly<Record<string, string>> = {
    voice: name,
    text,
    description,
    reference: reference?.text ?? "",
  };
  return template.replaceAll(
    /\{(voice|text|description|reference)\}/gu,
    (_, key: string) => values[key] ?? "",
  );
}

/** Returns the tokens of codes, which are in the order of the codec's slots. */
function codeTokens(codes: readonly number[], { base, codebook, slots }: TokensManifest["codec"]): number[] {
  return codes.map((code, i) => base + (i % slots.length) * codebook + code);
}

function parse(json: string): object & { readonly added_tokens?: readonly AddedToken[] } {
  try {
    return JSON.parse(json) as object;
  } catch (cause) {
    throw new Error(`tokenizer.json: is not JSON: ${(cause as Error).message}`, { cause });
  }
}
