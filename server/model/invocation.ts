import Type from "typebox";
import { Compile } from "typebox/compile";
import { type ModelKind, modelIds, models } from "../../config/contract/models.ts";
import type { ListedVoice } from "../../config/contract/voices.ts";
import { Failure, type FieldError } from "../contract/errors.ts";
import { type Invocation, samplingNames } from "../contract/speech.ts";

const schema = Type.Object({
  modelId: Type.Enum([...modelIds]),
  speaker: Type.String({ minLength: 1, maxLength: 100 }),
  lang: Type.String({ pattern: "^[a-z]{3}$" }),
  text: Type.String(),
  stretch: Type.Number({ exclusiveMinimum: 0 }),
  noTextNormalization: Type.Boolean(),
  pauseBetweenBrackets: Type.Boolean(),
  phonemizeBetweenBrackets: Type.Boolean(),
  inlineStretch: Type.Array(Type.Number({ exclusiveMinimum: 0 }), { maxItems: 1_000 }),
  sampling: Type.Object({
    repetitionPenalty: Type.Number({ exclusiveMinimum: 0 }),
    temperature: Type.Number({ minimum: 0 }),
    topP: Type.Number({ exclusiveMinimum: 0, maximum: 1 }),
    maxTokens: Type.Integer({ minimum: 1 }),
  }),
  unsetSampling: Type.Optional(Type.Array(Type.Enum([...samplingNames]), { maxItems: 4 })),
  saveOovs: Type.Optional(Type.Boolean()),
  lexicon: Type.Optional(Type.Record(Type.String(), Type.String({ maxLength: 500 }))),
});
const validator = Compile(schema);
const maxFieldErrors = 10;

/**
 * Validates the body of `POST /invocations`.
 * @throws Failure `invalid_request` that names each invalid field. The failure never repeats the content of a
 * field.
 */
export function readInvocation<KnownVoice extends ListedVoice>(
  body: unknown,
  tier: ModelKind,
  findVoice: (id: string) => KnownVoice | undefined,
): { invocation: Invocation; voice: KnownVoice } {
  if (!validator.Check(body)) throw invalid(invalidFields(body));
  const voice = findVoice(body.speaker);
  if (models[body.modelId].tier !== tier) {
    throw invalid([
      {
        pointer: "/modelId",
        detail: `is ${body.modelId}, which the model tier ${tier} does not serve; send the request to its own tier`,
      },
    ]);
  }
  if (!voice?.models.includes(body.modelId)) {
    throw invalid([
      {
        pointer: "/speaker",
        detail: `must be a voice of ${body.modelId}; GET /voices lists the voices`,
      },
    ]);
  }
  if (voice.language !== body.lang) {
    throw invalid([
      {
        pointer: "/lang",
        detail: `must be ${voice.language}, the language of the voice ${voice.id}`,
      },
    ]);
  }
  return { invocation: body, voice };
}

function invalidFields(body: unknown): FieldError[] {
  const errors = validator.Errors(body).slice(0, maxFieldErrors);
  return errors.map(({ instancePath, message }) => ({ pointer: instancePath, detail: message }));
}

function invalid(fields: readonly FieldError[]): Failure {
  const first = fields[0];
  const detail = first ? `${first.pointer || "The body"}: ${first.detail}` : "The body is not an invocation.";
  return new Failure("invalid_request", detail, { fields });
}
