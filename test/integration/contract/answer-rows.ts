import type { RuleId } from "./rules.ts";

type Rules = readonly RuleId[];

/** The container that responds. */
export type Container = "api" | "mist" | "arcana";

type Route = readonly [
  rules: Rules,
  container: Container,
  request: `${string} ${string}`,
  status: number,
  type: string,
  body: RegExp,
];

const requestsCounter = /^# TYPE http_requests_total counter$/m;

function refusal(rules: Rules, container: Container, request: Route[2], status: number, code: string): Route {
  return [rules, container, request, status, "application/problem+json", new RegExp(`"code":"${code}"`)];
}

/** The expected response of a route without an API key: status, media type, and a pattern of the body. */
export const routes: readonly Route[] = [
  [["4.6 /health", "/health"], "api", "GET /health", 200, "application/json", /^\{"apiStatus":"ok",/],
  [["/livez and /ready"], "api", "GET /livez", 200, "text/plain", /^ok$/],
  [["/livez and /ready"], "api", "GET /ready", 200, "text/plain", /^ok$/],
  [["/metrics"], "api", "GET /metrics", 200, "text/plain", /^# HELP /],
  [["GET /v1/voices"], "api", "GET /v1/voices", 200, "application/json", /"id":"luna"/],
  [["GET /v1/models"], "api", "GET /v1/models", 200, "application/json", /"id":"mistv2"/],
  [["GET /openapi.json"], "api", "GET /openapi.json", 200, "application/json", /^\{"openapi":"3\.1\./],
  [["4.6 /ping", "/readyz and /ping"], "mist", "GET /ping", 200, "text/plain", /^pong$/],
  [["/readyz and /ping"], "mist", "GET /readyz", 200, "text/plain", /^ok$/],
  [["4.6 /readyz", "/readyz and /ping"], "arcana", "GET /readyz", 200, "text/plain", /^ok$/],
  [["/readyz and /ping"], "arcana", "GET /ping", 200, "text/plain", /^pong$/],
  [["/ready of a model"], "mist", "GET /ready", 200, "text/plain", /^ready$/],
  [["/ready of a model"], "arcana", "GET /ready", 200, "text/plain", /^ready$/],
  [["4.6 /metrics", "/metrics"], "mist", "GET /metrics", 200, "text/plain", requestsCounter],
  [["/metrics"], "arcana", "GET /metrics", 200, "text/plain", requestsCounter],
  [["4.6 /health"], "api", "HEAD /health", 200, "application/json", /^$/],
  [["4.6 /health"], "api", "GET /health?verbose=1", 200, "application/json", /^\{"apiStatus"/],
  ...["/", "/nowhere", "/v2/svc-tts", "/v1/svc-tts/", "/V1/svc-tts", "/v1", "/ping", "/invocations"].map(
    (path) => refusal(["404", "9.1"], "api", `GET ${path}`, 404, "not_found"),
  ),
  ...["GET", "PUT", "PATCH", "DELETE", "OPTIONS"].map((method) =>
    refusal(["405"], "api", `${method} /v1/svc-tts`, 405, "method_not_allowed"),
  ),
  [["405"], "api", "HEAD /v1/svc-tts", 405, "application/problem+json", /^$/],
  refusal(["405"], "api", "POST /health", 405, "method_not_allowed"),
  refusal(["405"], "api", "DELETE /v1/voices", 405, "method_not_allowed"),
  // Without the server's own handler, Fastify would require a content type for QUERY.
  refusal(["405"], "api", "QUERY /v1/voices", 405, "method_not_allowed"),
  refusal(["405"], "api", "GET /v1/audio/speech", 405, "method_not_allowed"),
  refusal(["404"], "mist", "GET /health", 404, "not_found"),
  refusal(["5.1", "401"], "api", "POST /v1/svc-tts", 401, "unauthorized"),
  refusal(["5.1", "401"], "api", "POST /v1/audio/speech", 401, "unauthorized"),
  refusal(["4.6 /invocations", "/invocations"], "mist", "POST /invocations", 401, "unauthorized"),
  refusal(["/invocations"], "arcana", "POST /invocations", 401, "unauthorized"),
];

const good = JSON.stringify({ speaker: "alan", text: "Hi." });
const form = { "content-type": "application/x-www-form-urlencoded" };

/** Requests that are rejected because of their headers or the syntax of their body. */
export const refused: readonly (readonly [
  rules: Rules,
  body: string,
  headers: Readonly<Record<string, string>>,
  status: number,
  code: string,
])[] = [
  [["400", "problem document"], '{"speaker": ', {}, 400, "malformed_json"],
  [["400"], "", {}, 400, "malformed_json"],
  [["400"], "{'speaker': 'alan'}", {}, 400, "malformed_json"],
  [["400"], `${good} x`, {}, 400, "malformed_json"],
  [["2.1 Content-Type", "415"], good, { "content-type": "text/plain" }, 415, "unsupported_media_type"],
  [["415"], good, { "content-type": "text/json" }, 415, "unsupported_media_type"],
  [["415"], "speaker=alan&text=x", form, 415, "unsupported_media_type"],
  [["415"], good, { "content-encoding": "gzip" }, 415, "unsupported_media_type"],
  [["406"], good, { accept: "audio/x-unknown" }, 406, "not_acceptable"],
  [["401", "5.1"], good, { authorization: "" }, 401, "unauthorized"],
  [["401"], good, { authorization: "Bearer" }, 401, "unauthorized"],
  [["401"], good, { authorization: "Bearer svc_nobody" }, 401, "unauthorized"],
  [["401"], good, { authorization: "Basic YTpi" }, 401, "unauthorized"],
  [["401"], "{", { authorization: "Bearer x" }, 401, "unauthorized"],
];

/** Headers of valid requests that must not change the response. */
export const spellings: readonly (readonly [rules: Rules, headers: Readonly<Record<string, string>>])[] = [
  [["2.1 Content-Type"], { "content-type": "application/json; charset=utf-8" }],
  [["2.1 Content-Type"], { "content-type": "Application/JSON" }],
  [["2.1 Content-Type"], { "content-encoding": "identity" }],
  [["raw PCM"], { "accept-encoding": "gzip, br" }],
  [["9.1"], { "x-forwarded-proto": "https" }],
];

/** Accepted requests of the OpenAI-compatible API. `codec` is FFmpeg's name of the codec. */
export const openaiSpoken: readonly (readonly [
  rules: Rules,
  body: object,
  mediaType: string,
  codec: string,
])[] = [
  [["the OpenAI-compatible API"], {}, "audio/mpeg", "mp3"],
  [["the OpenAI-compatible API"], { response_format: "mp3", speed: 4 }, "audio/mpeg", "mp3"],
  [["the OpenAI-compatible API"], { response_format: "opus", speed: 0.25 }, "audio/ogg", "opus"],
  [
    ["the OpenAI-compatible API"],
    { response_format: "wav", instructions: "Whisper." },
    "audio/wav",
    "pcm_s16le",
  ],
  [
    ["the OpenAI-compatible API"],
    { response_format: "pcm", stream_format: "audio" },
    "audio/pcm",
    "pcm_s16le",
  ],
  [
    ["the OpenAI-compatible API"],
    { model: "mistv2", voice: "alan", response_format: "wav" },
    "audio/wav",
    "pcm_s16le",
  ],
  [["the OpenAI-compatible API", "null"], { response_format: null, speed: null }, "audio/mpeg", "mp3"],
];

/** Requests that are rejected, with the parameter that the error names. */
export const openaiRefused: readonly (readonly [rules: Rules, body: object, param: string])[] = [
  [["the OpenAI-compatible API", "OpenAI's errors"], { response_format: "aac" }, "response_format"],
  [["OpenAI's errors"], { response_format: "flac" }, "response_format"],
  [["OpenAI's errors"], { voice: "no-such-voice" }, "voice"],
  [["OpenAI's errors"], { voice: undefined }, "voice"],
  [["OpenAI's errors"], { model: "gpt-9" }, "model"],
  [["OpenAI's errors"], { model: "mist", voice: "nova" }, "voice"],
  [["OpenAI's errors"], { input: "" }, "input"],
  [["OpenAI's errors"], { speed: 0.2 }, "speed"],
  [["OpenAI's errors"], { speed: 4.1 }, "speed"],
  [["OpenAI's errors"], { stream_format: "websocket" }, "stream_format"],
];
