/** Describes the responses as JSON Schema 2020-12. */
import { licenseStates } from "../../../config/contract/license.ts";
import { modelIds } from "../../../config/contract/models.ts";
import { errorCodes } from "../../contract/errors.ts";
import { scopes } from "../../store/keys/key.ts";

const text = { type: "string" } as const;
const integer = { type: "integer" } as const;

function object(properties: Readonly<Record<string, object>>, optional: readonly string[] = []) {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: "object", properties, required };
}

const list = (items: object) => ({ type: "array", items });

const problem = {
  type: {
    type: "string",
    format: "uri",
    description: "Link to the section of the error code in the documentation.",
  },
  title: text,
  status: integer,
  detail: { type: "string", description: "What happened, and what the client can do." },
  code: { type: "string", enum: errorCodes },
  requestId: text,
  errors: list(
    object({
      pointer: { type: "string", description: "JSON pointer (RFC 6901) to the field in the body." },
      detail: text,
    }),
  ),
};

const openaiError = object({
  message: text,
  type: text,
  code: { type: "string", enum: errorCodes },
  param: { type: ["string", "null"] },
});

export const answerSchemas = {
  AudioContent: object({ audioContent: { type: "string", contentEncoding: "base64" } }),
  SpeechEvents: {
    type: "string",
    description:
      'Server-sent events. At least one `chunk` with `{"data": base64}`: each chunk can be decoded separately, and the decoded chunks form the file. Then one `timestamps` with `{"word_timestamps": {"words", "start", "end"}}` in seconds, and `done` with `{"done": true}`. If the synthesis fails during the stream, the last event is `error` with a problem document.',
  },
  OpenaiSpeechEvents: {
    type: "string",
    description:
      "Server-sent events of the OpenAI-compatible API: `speech.audio.delta` with `audio` in base64, then `speech.audio.done` with `usage` in characters. If the synthesis fails during the stream, the last event is `error`.",
  },
  Problem: object(problem, ["errors"]),
  OpenaiProblem: object({ ...problem, error: openaiError }, ["errors"]),
  VoiceList: object({
    voices: list(
      object(
        {
          id: text,
          models: list({ type: "string", enum: [...modelIds] }),
          language: { type: "string", description: "ISO 639-3." },
          gender: { type: "string", enum: ["female", "male", "neutral"] },
          license: text,
          engine: {
            type: "string",
            description:
              "The engine of the voice. Absent until a model tier has reported it. The header `X-Voice-Engine` names the engine of each response.",
          },
          engines: {
            type: "object",
            additionalProperties: text,
            description:
              "The engine by model. Present instead of `engine` if the models of the voice use different engines.",
          },
        },
        ["engine", "engines"],
      ),
    ),
  }),
  ModelList: object({
    object: { type: "string", const: "list" },
    data: list(
      object({
        id: { type: "string", enum: [...modelIds] },
        object: { type: "string", const: "model" },
        owned_by: text,
        reachable: { type: "boolean" },
        maxTextLength: {
          type: ["integer", "null"],
          description: "Limit in characters. Null means unlimited.",
        },
        defaultSamplingRate: integer,
        defaultPcmSamplingRate: integer,
        engines: { ...list(text), description: "The engines of the model's voices." },
        mountedEngines: list(
          object(
            {
              engine: text,
              variant: {
                type: "string",
                description: "Variant of the engine, if the engine has several variants.",
              },
            },
            ["variant"],
          ),
        ),
      }),
    ),
  }),
  OovList: object({
    oovs: list(
      object({
        word: text,
        language: { type: "string", description: "ISO 639-3." },
        count: { type: "integer", description: "Number of occurrences." },
        firstSeen: { type: "string", format: "date-time" },
        lastSeen: { type: "string", format: "date-time" },
      }),
    ),
  }),
  KeyList: object({
    keys: list(
      object({
        name: text,
        team: { type: ["string", "null"] },
        scopes: list({ type: "string", enum: [...scopes] }),
        requestsPerMinute: { type: ["integer", "null"], description: "Null: the server's default." },
        streams: {
          type: ["integer", "null"],
          description: "Concurrent streams. Null: the server's default.",
        },
        secrets: list(
          object({
            digest: { type: "string", description: "The first digits of the secret's SHA-256 digest." },
            expiresAt: { type: ["string", "null"], format: "date-time" },
            lastUsedAt: { type: ["string", "null"], format: "date-time" },
          }),
        ),
      }),
    ),
  }),
  NewKey: object({
    name: text,
    key: { type: "string", description: "The API key. No other response contains it." },
  }),
  Health: object({
    apiStatus: { type: "string", enum: ["ok", "unavailable"] },
    timestamp: { type: "string", format: "date-time" },
    licenseStatus: { type: "string", enum: licenseStates },
    modelReachable: { type: "boolean" },
  }),
};
