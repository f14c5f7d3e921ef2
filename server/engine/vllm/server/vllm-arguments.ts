import type { GeneratorModel } from "../model/model-folder.ts";
import { servedName } from "./server-address.ts";

/** Sequences beyond the streams: a stream's next phrase may begin before the last token of this one is out, and proofs need one. */
const spareSequences = 4;

/**
 * Arguments of `vllm` for a model.
 * @param extra said last, so that they win.
 */
export function vllmArguments(
  { folder, manifest }: GeneratorModel,
  streams: number,
  extra: readonly string[],
): string[] {
  const forTokens =
    manifest.kind === "tokens"
      ? [
          "--max-model-len",
          String(manifest.context),
          "--skip-tokenizer-init",
          // a frame at a time: less would be many small events, more would be heard later
          "--stream-interval",
          String(manifest.codec.slots.length),
          "--max-num-seqs",
          String(streams + spareSequences),
          "--generation-config",
          "vllm",
        ]
      : [];
  return [
    "serve",
    folder,
    "--served-model-name",
    servedName,
    "--disable-uvicorn-access-log",
    ...forTokens,
    ...(manifest.vllm?.args ?? []),
    ...extra,
  ];
}

/** What vLLM does unasked and is not wanted here: telling its makers, and looking for files elsewhere. */
export const vllmEnvironment: Readonly<Record<string, string>> = {
  VLLM_NO_USAGE_STATS: "1",
  DO_NOT_TRACK: "1",
  HF_HUB_OFFLINE: "1",
  TRANSFORMERS_OFFLINE: "1",
};
