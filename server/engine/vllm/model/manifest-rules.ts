import type { AudioManifest, CodecManifest, ModelVoice, TokensManifest } from "./manifest-schema.ts";

/** The rules of a manifest that concern several fields. */

export interface ManifestProblem {
  /** The field as a JSON pointer. */
  readonly field: string;
  readonly message: string;
}

/** Returns the first problem of a manifest of the kind `tokens`, or undefined. */
export function findTokensProblem(manifest: TokensManifest): ManifestProblem | undefined {
  return (
    inputProblem(manifest.codec) ??
    specialTokenProblem(manifest) ??
    frontendProblem(manifest.prompt) ??
    voicesProblem(manifest) ??
    contextProblem(manifest)
  );
}

/** Returns the first problem of a manifest of the kind `audio`, or undefined. */
export function findAudioProblem(manifest: AudioManifest): ManifestProblem | undefined {
  const withReference = voicesOf(manifest).find(([, { reference }]) => reference !== undefined);
  if (!withReference) return undefined;
  return {
    field: `/voices/${withReference[0]}/reference`,
    message: 'requires the kind "tokens"; a model of the kind "audio" has no codes',
  };
}

function inputProblem({ slots, inputs }: CodecManifest): ManifestProblem | undefined {
  const input = slots.find((slot) => slot >= inputs.length);
  if (input !== undefined)
    return {
      field: "/codec/slots",
      message: `names input ${input}, and /codec/inputs has only ${inputs.length} inputs`,
    };
  const unused = inputs.findIndex((_, i) => !slots.includes(i));
  if (unused < 0) return undefined;
  return { field: "/codec/slots", message: `must name every input; input ${unused} is missing` };
}

function specialTokenProblem({ codec, stop, startAfter }: TokensManifest): ManifestProblem | undefined {
  const end = codec.base + codec.slots.length * codec.codebook;
  const isCode = (id: number) => id >= codec.base && id < end;
  const codes = `a code of the codec (${codec.base} to ${end - 1})`;
  const inside = stop.find(isCode);
  if (inside !== undefined)
    return { field: "/stop", message: `must not contain ${inside}, which is ${codes}` };
  if (startAfter === undefined) return undefined;
  if (isCode(startAfter))
    return { field: "/startAfter", message: `must not be ${startAfter}, which is ${codes}` };
  if (!stop.includes(startAfter)) return undefined;
  return { field: "/startAfter", message: `must not be ${startAfter}, which is also in /stop` };
}

function frontendProblem({ frontend, espeak }: TokensManifest["prompt"]): ManifestProblem | undefined {
  if (espeak === undefined || frontend === "phonemes") return undefined;
  return { field: "/prompt/espeak", message: 'has an effect only if /prompt/frontend is "phonemes"' };
}

function voicesProblem(manifest: TokensManifest): ManifestProblem | undefined {
  const { template, reference: placement } = manifest.prompt;
  if (template.includes("{reference}") !== (placement?.placement === "continuation"))
    return {
      field: "/prompt/template",
      message: 'must contain {reference} if, and only if, /prompt/reference/placement is "continuation"',
    };
  const hasDescription = template.includes("{description}");
  for (const [id, { description, reference }] of voicesOf(manifest)) {
    const field = `/voices/${id}`;
    if (hasDescription !== (description !== undefined))
      return {
        field: `${field}/description`,
        message: hasDescription
          ? "is missing; /prompt/template contains {description}"
          : "has no effect, because /prompt/template does not contain {description}",
      };
    if ((placement !== undefined) !== (reference !== undefined))
      return {
        field: `${field}/reference`,
        message: placement
          ? "is missing; /prompt/reference requires it"
          : "has no effect, because /prompt/reference is missing",
      };
    const problem = reference && codesProblem(reference.codes, manifest.codec);
    if (problem) return { field: `${field}/reference/codes`, message: problem };
  }
  return undefined;
}

function codesProblem(codes: readonly number[], { slots, codebook }: CodecManifest): string | undefined {
  const large = codes.find((code) => code >= codebook);
  if (large !== undefined) return `must not contain ${large}; the codebook has ${codebook} codes`;
  if (codes.length % slots.length === 0) return undefined;
  return `must contain whole frames of ${slots.length} codes; it has ${codes.length} codes`;
}

function contextProblem({ prompt, codec, context, voices }: TokensManifest): ManifestProblem | undefined {
  const codes = voicesOf({ voices }).map(([, { reference }]) => reference?.codes.length ?? 0);
  const least = prompt.pre.length + prompt.post.length + codec.slots.length + Math.max(0, ...codes);
  if (context > least) return undefined;
  return {
    field: "/context",
    message: `is ${context}, which leaves no tokens for speech after the prompt; set a larger context`,
  };
}

function voicesOf({ voices }: Pick<TokensManifest, "voices">): [string, ModelVoice][] {
  return Object.entries(voices).map(([id, voice]) => [
    id,
    typeof voice === "string" ? { name: voice } : voice,
  ]);
}
