/**
 * Describes the API as an OpenAPI 3.1 document, for `GET /openapi.json` and `docs/openapi.json`. The same schemas
 * describe and validate the fields of requests.
 */
import Type, { type TSchema } from "typebox";
import { modelIds } from "../../../config/contract/models.ts";
import { languages } from "../../../config/contract/voices.ts";
import { type ErrorCode, errorCodes, Failure } from "../../contract/errors.ts";
import { wordLimits } from "../oovs/limits.ts";
import { openaiFields } from "../openai/request.ts";
import { fields } from "../request/fields.ts";
import { keyFields, rotationFields } from "../request/key-request.ts";
import { offeredTypes } from "../request/variants.ts";
import { answerSchemas } from "./answers.ts";

const samplingRate = (highestRate: number) =>
  Type.Integer({
    minimum: 1,
    maximum: highestRate,
    description:
      "Sampling rate in Hz. `mist`, `mistv2`: 4000 to 44100. `ogg`: required, one of 8000, 12000, 16000, 24000. `arcana`: any value; with the profile `cloud`, one of 8000, 16000, 22050, 24000, 44100, 48000, 96000. MP3 uses the next rate that the format supports. The header `X-Sampling-Rate` contains the rate of the response.",
  });

/** Describes a body. `null` means absent, except for required fields. Unknown fields are ignored. */
function requestBody(properties: Readonly<Record<string, TSchema>>, required: readonly string[]) {
  const described = Object.entries(properties).map(([name, schema]) => {
    const { description, ...rest } = schema as TSchema & { description?: string };
    return [name, required.includes(name) ? schema : { description, anyOf: [rest, { type: "null" }] }];
  });
  return { type: "object", properties: Object.fromEntries(described), required };
}

const schema = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const json = (name: string) => ({ "application/json": { schema: schema(name) } });

const answerHeaders = Object.fromEntries(
  [
    [
      "X-Request-Id",
      "The ID of the request, from the same header of the request or generated. The logs contain the ID.",
      { type: "string" },
    ],
    ["X-Sampling-Rate", "Sampling rate of the audio in Hz.", { type: "integer" }],
    ["X-Model", "The model that synthesized the speech.", { type: "string", enum: [...modelIds] }],
    ["X-Voice", "The voice of the speech.", { type: "string" }],
    ["X-Voice-Engine", "The engine that synthesized the speech.", { type: "string" }],
    ["Server-Timing", "Time to first audio in milliseconds.", { type: "string" }],
  ].map(([name, description, of]) => [name, { description, schema: of }]),
);

/** Describes one response for each status of these error codes. */
function problems(codes: readonly ErrorCode[], of: string) {
  const byStatus = Map.groupBy(codes, (code) => String(new Failure(code, "").status));
  return Object.fromEntries(
    [...byStatus].map(([status, statusCodes]) => [
      status,
      {
        description: statusCodes.map((code) => `\`${code}\``).join(", "),
        content: { "application/problem+json": { schema: schema(of) } },
      },
    ]),
  );
}

/** The error codes that the speech routes never return. */
const otherRouteCodes: readonly ErrorCode[] = [
  "not_found",
  "method_not_allowed",
  "cross_site",
  "name_taken",
  "upgrade_required",
  "too_many_sockets",
];
const speechCodes = errorCodes.filter((code) => !otherRouteCodes.includes(code));
const openaiCodes = speechCodes.filter((code) => code !== "not_acceptable" && code !== "audio_too_large");

/** Describes binary audio, which has a media type but no schema. */
const audioContent = (types: readonly string[]) => Object.fromEntries(types.map((type) => [type, {}]));

const speech = {
  summary: "Synthesize speech",
  description:
    "`Accept` selects the form of the response. Audio of the types `audio/*` is streamed during the synthesis.",
  operationId: "speak",
  security: [{ key: [] }],
  requestBody: { required: true, content: json("SpeechRequest") },
  responses: {
    "200": {
      description: "The speech.",
      headers: answerHeaders,
      content: {
        ...json("AudioContent"),
        "text/event-stream": { schema: schema("SpeechEvents") },
        ...audioContent(offeredTypes.filter((type) => type.startsWith("audio/"))),
      },
    },
    ...problems(speechCodes, "Problem"),
  },
};

const openaiSpeech = {
  summary: "Synthesize speech (OpenAI-compatible)",
  operationId: "createSpeech",
  security: [{ key: [] }],
  requestBody: { required: true, content: json("OpenaiSpeechRequest") },
  responses: {
    "200": {
      description: "The speech at 24 kHz, streamed.",
      headers: answerHeaders,
      content: {
        ...audioContent(["audio/mpeg", "audio/ogg", "audio/wav", "audio/pcm"]),
        "text/event-stream": { schema: schema("OpenaiSpeechEvents") },
      },
    },
    ...problems(openaiCodes, "OpenaiProblem"),
  },
};

/** The error codes of a GET route that requires an API key. */
const oovCodes: readonly ErrorCode[] = [
  "malformed_http",
  "invalid_request",
  "unauthorized",
  "insufficient_scope",
  "request_timeout",
  "headers_too_large",
  "internal",
  "store_unavailable",
];

const oovs = {
  summary: "List out-of-vocabulary words",
  description:
    "The words that `saveOovs` recorded for the team of the key, or for the key if it has no team, most recent first. The key needs `oov:read`.",
  operationId: "listOovs",
  security: [{ key: [] }],
  parameters: [
    {
      name: "language",
      in: "query",
      description: "Return only words of this language (ISO 639-1 or 639-3).",
      schema: {
        type: "string",
        enum: Object.entries(languages).flatMap(([id, { iso6391 }]) => [id, iso6391]),
      },
    },
    {
      name: "limit",
      in: "query",
      schema: { type: "integer", minimum: 1, maximum: wordLimits.most, default: wordLimits.usual },
    },
  ],
  responses: {
    "200": { description: "The words.", content: json("OovList") },
    ...problems(oovCodes, "Problem"),
  },
};

/** The error codes of every operation on API keys. */
const keyCodes: readonly ErrorCode[] = [...oovCodes, "not_found", "rate_limited", "draining"];
const keyBodyCodes: readonly ErrorCode[] = [
  ...keyCodes,
  "malformed_json",
  "body_too_large",
  "unsupported_media_type",
  "overloaded",
];
const keyName = {
  name: "name",
  in: "path",
  required: true,
  schema: { type: "string", minLength: 1, maxLength: 64 },
};
const needsAdmin =
  "The key needs `admin`. A key that belongs to a team can list and change only keys of that team. Available only if API keys are stored in a database.";

const keyPaths = {
  "/v1/keys": {
    get: {
      summary: "List keys",
      description: needsAdmin,
      operationId: "listKeys",
      security: [{ key: [] }],
      responses: {
        "200": { description: "The valid keys.", content: json("KeyList") },
        ...problems(keyCodes, "Problem"),
      },
    },
    post: {
      summary: "Create a key",
      description: `Only this response contains the key. ${needsAdmin}`,
      operationId: "createKey",
      security: [{ key: [] }],
      requestBody: { required: true, content: json("KeyRequest") },
      responses: {
        "201": { description: "The key.", content: json("NewKey") },
        ...problems([...keyBodyCodes, "name_taken"], "Problem"),
      },
    },
  },
  "/v1/keys/{name}": {
    delete: {
      summary: "Revoke a key",
      description: `Every replica rejects the key within 5 seconds. ${needsAdmin}`,
      operationId: "revokeKey",
      security: [{ key: [] }],
      parameters: [keyName],
      responses: { "204": { description: "The key is revoked." }, ...problems(keyCodes, "Problem") },
    },
  },
  "/v1/keys/{name}/rotate": {
    post: {
      summary: "Rotate a key",
      description: `The previous secrets stay valid for the overlap. ${needsAdmin}`,
      operationId: "rotateKey",
      security: [{ key: [] }],
      parameters: [keyName],
      requestBody: { required: true, content: json("KeyRotation") },
      responses: {
        "200": { description: "The key with its new secret.", content: json("NewKey") },
        ...problems(keyBodyCodes, "Problem"),
      },
    },
  },
};

interface Read {
  readonly summary: string;
  readonly operationId: string;
  readonly answers: Readonly<Record<string, readonly [description: string, content: object]>>;
}

function read({ summary, operationId, answers }: Read) {
  const responses = Object.entries(answers).map(([status, [description, content]]) => [
    status,
    { description, content },
  ]);
  return { get: { summary, operationId, responses: Object.fromEntries(responses) } };
}

const plain = { "text/plain": { schema: { type: "string" } } };

/**
 * The version of the API, which differs from the version of the program. An addition to the API increments
 * the second number.
 */
const version = "1.0.0";

/**
 * Creates the document.
 * @param highestRate the highest sampling rate in Hz of a self-hosted arcana.
 * @returns a new object of plain JSON.
 */
export function openapiDocument(highestRate: number): object {
  const document = {
    openapi: "3.1.0",
    info: {
      title: "svc-tts",
      version,
      description: "Text to speech. Every failure is a problem document (RFC 9457) with a stable `code`.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    paths: {
      "/v1/svc-tts": { post: speech },
      "/v1/audio/speech": { post: openaiSpeech },
      "/v1/voices": read({
        summary: "List voices",
        operationId: "listVoices",
        answers: { "200": ["Every voice.", json("VoiceList")] },
      }),
      "/v1/models": read({
        summary: "List the models of this deployment",
        operationId: "listModels",
        answers: { "200": ["Every model.", json("ModelList")] },
      }),
      "/v1/oovs": { get: oovs },
      ...keyPaths,
      "/openapi.json": read({
        summary: "This document",
        operationId: "describe",
        answers: { "200": ["This document.", { "application/json": { schema: { type: "object" } } }] },
      }),
      "/health": read({
        summary: "Health, in the four fields of the specification",
        operationId: "health",
        answers: {
          "200": ["A model can serve.", json("Health")],
          "503": ["No model can serve.", json("Health")],
        },
      }),
      "/livez": read({
        summary: "Liveness",
        operationId: "live",
        answers: { "200": ["The process is running.", plain] },
      }),
      "/ready": read({
        summary: "Readiness",
        operationId: "ready",
        answers: {
          "200": ["Ready for requests.", plain],
          "503": ["Not ready; the body has the reason.", plain],
        },
      }),
      "/metrics": read({
        summary: "Metrics in the Prometheus text format",
        operationId: "metrics",
        answers: { "200": ["The metrics.", plain] },
      }),
    },
    components: {
      securitySchemes: {
        key: {
          type: "http",
          scheme: "bearer",
          description: "An API key with `tts:write`, or with the scope that the operation names.",
        },
      },
      schemas: {
        SpeechRequest: requestBody({ ...fields, samplingRate: samplingRate(highestRate) }, [
          "speaker",
          "text",
        ]),
        KeyRequest: requestBody(keyFields, ["name"]),
        KeyRotation: requestBody(rotationFields, []),
        OpenaiSpeechRequest: requestBody(openaiFields, ["model", "input", "voice"]),
        ...answerSchemas,
      },
    },
  };
  // The conversion removes internal properties of the schema library.
  return JSON.parse(JSON.stringify(document));
}
