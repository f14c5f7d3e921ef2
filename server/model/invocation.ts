import Type from "typebox";
import { Compile } from "typebox/compile";
import { type ModelKind, modelIds, models } from "../../config/contract/models.ts";
import type { ListedVoice } from "../../config/contract/voices.ts";
import { Failure, type FieldError } from "../contract/errors.ts";
import type { Invocation } from "../contract/speech.ts";

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
  saveOovs: Type.Optional(Type.Boolean()),
  lexicon: Type.Optional(Type.Record(Type.String(), Type.String({ maxLength: 500 }))),
});
const validator = Compile(schema);
const maxFieldErrors = 10;

/**
 * Validates the body of `POST /invocations`.
 * @throws Failure `invalid_request` that names each wrong field, and never repeats its content.
 */
export function readInvocation<Known extends ListedVoice>(
  body: unknown,
  tier: ModelKind,
  findVoice: (id: string) => Known | undefined,
): { invocation: Invocation; voice: Known } {
  if (!validator.Check(body)) throw invalid(wrongFields(body));
  const voice = findVoice(body.speaker);
  if (models[body.modelId].tier !== tier) {
    throw invalid([
      { pointer: "/modelId", detail: `This is the ${tier} tier; it does not serve this model.` },
    ]);
  }
  if (!voice?.models.includes(body.modelId)) {
    throw invalid([
      { pointer: "/speaker", detail: `The model ${body.modelId} has no voice with this name.` },
    ]);
  }
  if (voice.language !== body.lang) {
    throw invalid([{ pointer: "/lang", detail: `The voice ${voice.id} speaks ${voice.language}.` }]);
  }
  return { invocation: body, voice };
}

function wrongFields(body: unknown): FieldError[] {
  const errors = validator.Errors(body).slice(0, maxFieldErrors);
  return errors.map(({ instancePath, message }) => ({ pointer: instancePath, detail: message }));
}

function invalid(fields: readonly FieldError[]): Failure {
  const first = fields[0];
  const detail = first ? `${first.pointer || "The body"}: ${first.detail}` : "The body is not an invocation.";
  return new Failure("invalid_request", detail, { fields });
}
