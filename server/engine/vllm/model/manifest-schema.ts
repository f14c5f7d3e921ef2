import Type, { type Static } from "typebox";

/**
 * The schema of `manifest.json`, which describes a model for arcana. docs/reference/model-manifest.md
 * explains each field.
 */

const text = Type.String({ minLength: 1, maxLength: 200 });
const tokenId = Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 });
const tokenIds = Type.Array(tokenId, { maxItems: 64 });
/** A path inside the manifest's folder, without a leading slash and without `..`. */
const path = Type.String({ pattern: "^(?!\\.{1,2}/|/)(?!.*/\\.{1,2}/)[^\\\\\\0]{1,255}$" });
const frames = Type.Integer({ minimum: 0, maximum: 64 });

const vllm = Type.Object({ args: Type.Optional(Type.Array(text, { maxItems: 64 })) });
const prompt = Type.Object({
  template: Type.String({ pattern: "\\{text\\}", maxLength: 2000 }),
  pre: tokenIds,
  post: tokenIds,
  /** The text that the model reads: written words, or phonemes in IPA from eSpeak NG. */
  frontend: Type.Optional(Type.Enum(["text", "phonemes"])),
  /** The voice of eSpeak NG that provides the phonemes. */
  espeak: Type.Optional(Type.String({ pattern: "^[a-zA-Z0-9+_-]{2,40}$" })),
  reference: Type.Optional(
    Type.Object({
      /**
       * The position of the reference: a separate turn before the prompt, or the start of the speech that the
       * model continues.
       */
      placement: Type.Enum(["turn", "continuation"]),
      /** The tokens after the codes of a turn. */
      end: Type.Optional(tokenIds),
    }),
  ),
});
/** A recording of a voice, as its words and as codes of the codec. */
const reference = Type.Object({
  text: Type.String({ minLength: 1, maxLength: 2000 }),
  codes: Type.Array(Type.Integer({ minimum: 0, maximum: 2 ** 20 }), { minItems: 1, maxItems: 32_768 }),
});
const voice = Type.Object({
  name: text,
  description: Type.Optional(Type.String({ minLength: 1, maxLength: 1000 })),
  reference: Type.Optional(reference),
});
/** The defaults of the sampling options, for requests that do not set the options. */
const sampling = Type.Object({
  repetitionPenalty: Type.Optional(Type.Number({ minimum: 0.1, maximum: 10 })),
  temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2 })),
  topP: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 1 })),
  maxTokens: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
});
const codec = Type.Object({
  onnx: path,
  rate: Type.Integer({ minimum: 4000, maximum: 192_000 }),
  frameSamples: Type.Integer({ minimum: 1, maximum: 100_000 }),
  base: tokenId,
  codebook: Type.Integer({ minimum: 2, maximum: 2 ** 20 }),
  slots: Type.Array(Type.Integer({ minimum: 0, maximum: 63 }), { minItems: 1, maxItems: 128 }),
  inputs: Type.Array(text, { minItems: 1, maxItems: 64 }),
  output: text,
  left: frames,
  right: frames,
  hops: Type.Array(Type.Integer({ minimum: 1, maximum: 64 }), { minItems: 1, maxItems: 16 }),
});
const common = {
  license: text,
  /** The digest of every file of the folder. */
  sha256: Type.Record(path, Type.String({ pattern: "^[0-9a-f]{64}$" })),
  /** The model's voice for each voice of arcana: its name, or an object with its name. */
  voices: Type.Record(text, Type.Union([text, voice])),
  sampling: Type.Optional(sampling),
  vllm: Type.Optional(vllm),
};

export const manifestSchemas = {
  tokens: Type.Object({
    kind: Type.Literal("tokens"),
    ...common,
    prompt,
    stop: Type.Array(tokenId, { minItems: 1, maxItems: 64 }),
    /** The token after which the model writes speech. Without this token, the speech follows the prompt. */
    startAfter: Type.Optional(tokenId),
    context: Type.Integer({ minimum: 64, maximum: 10_000_000 }),
    codec,
  }),
  audio: Type.Object({
    kind: Type.Literal("audio"),
    ...common,
    rate: Type.Integer({ minimum: 4000, maximum: 192_000 }),
  }),
};

/** The objects inside a manifest. */
export const manifestParts = { vllm, prompt, reference, voice, sampling, codec };

export type TokensManifest = Static<typeof manifestSchemas.tokens>;
export type AudioManifest = Static<typeof manifestSchemas.audio>;
export type ArcanaManifest = TokensManifest | AudioManifest;
export type CodecManifest = TokensManifest["codec"];
/** The voice of the model that synthesizes a voice of arcana. */
export type ModelVoice = Static<typeof voice>;
