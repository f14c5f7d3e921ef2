import type { GeneratorModel } from "../model/model-folder.ts";
import { servedName } from "./server-address.ts";

/**
 * Sequences in addition to the streams: a stream's next phrase may start before the last token of this one is
 * written, and proofs need one.
 */
const spareSequences = 4;

/**
 * Arguments of `vllm` for a model.
 * @param extra appended last, so that they override the others.
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
          // One frame per event: fewer tokens would be many small events, and more would delay the audio.
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

/** Disables vLLM's defaults that are not wanted here: usage reports, and downloads of files. */
export const vllmEnvironment: Readonly<Record<string, string>> = {
  VLLM_NO_USAGE_STATS: "1",
  DO_NOT_TRACK: "1",
  HF_HUB_OFFLINE: "1",
  TRANSFORMERS_OFFLINE: "1",
};
