/**
 * The rules of the interface: each row of the specification's tables, each numbered sentence about the
 * server, and each decision of this project. Each rule names the test file that exercises it. That file calls
 * `heldRules`, and fails if its tests did not exercise all its rules. A rule for another component names that
 * component instead. `coverage.test.ts` checks that the list is complete.
 */
const answers = "test/integration/contract/answers.test.ts";
const audio = "test/integration/contract/audio.test.ts";
const backPressure = "test/integration/load/back-pressure.test.ts";
const clients = "test/integration/contract/clients.test.ts";
const docs = "test/unit/docs/docs.test.ts";
const engineMetrics = "test/integration/monitoring/engine-metrics.test.ts";
const modelTier = "test/integration/load/model-tier.test.ts";
const plan = "test/unit/text/plan.test.ts";
const quotas = "test/integration/load/quotas.test.ts";
const requests = "test/integration/contract/requests.test.ts";
const serverRules = "test/integration/server/api/rules.test.ts";
const speech = "test/integration/server/api/speech.test.ts";

export const specification = {
  "1.1": [audio, "One JSON request to one endpoint returns audio."],
  "1.2": [audio, "The form of the response depends on Accept and, for some media types, on audioFormat."],
  "1.3": [
    requests,
    "A client can select mist (the default), mistv2 or arcana. mist supports markup, arcana supports sampling.",
  ],
  "1.5": [requests, "The server stores nothing: every request is stateless."],

  "2.1 Content-Type": [requests, "application/json"],
  "2.1 mist speaker": [requests, "Required. One of the voices published for the model."],
  "2.1 mist text": [requests, "Required. The text to synthesize."],
  "2.1 mist modelId": [requests, "mist or mistv2. The default is mist."],
  "2.1 mist audioFormat": [requests, "mp3, mulaw or pcm on the event stream, wav or ogg in JSON."],
  "2.1 mist lang": [requests, "Must match the language of the speaker."],
  "2.1 mist samplingRate": [
    requests,
    "4000 to 44100. The default is 22050, for raw PCM 16000. For ogg required: 8000, 12000, 16000 or 24000.",
  ],
  "2.1 mist speedAlpha": [requests, "The default is 1.0. A lower value is faster, a higher value is slower."],
  "2.1 mist noTextNormalization": [requests, "The default is false. With true, the text is not normalized."],
  "2.1 mist pauseBetweenBrackets": [
    requests,
    "The default is false. With true, <N> is a pause of N milliseconds.",
  ],
  "2.1 mist phonemizeBetweenBrackets": [
    requests,
    "The default is false. With true, a word in curly brackets is read as phonemes.",
  ],
  "2.1 mist inlineSpeedAlpha": [
    requests,
    "Comma-separated speeds for the words in square brackets, in the same order.",
  ],
  "2.1 mist saveOovs": [
    requests,
    "The default is false. Supported for wav, ogg and audio/pcm, not for the event stream.",
  ],
  "2.1 arcana speaker": [requests, "Required. One of the flagship voices."],
  "2.1 arcana text": [requests, "Required. The length is not limited."],
  "2.1 arcana modelId": [requests, "Must be arcana."],
  "2.1 arcana lang": [requests, "Must match the language of the speaker."],
  "2.1 arcana repetition_penalty": [requests, "The default is 1.5. The typical range is 1 to 2."],
  "2.1 arcana temperature": [
    requests,
    "The default is 0.5. With 0, sampling is greedy. The typical range is 0 to 1.",
  ],
  "2.1 arcana top_p": [requests, "Above 0, at most 1. The default is 1."],
  "2.1 arcana samplingRate": [
    requests,
    "The default is 24000. The cloud allows seven rates, a self-hosted server any rate.",
  ],
  "2.1 arcana speedAlpha": [
    requests,
    "Only self-hosted. The default is 1. A lower value is slower, a higher value is faster.",
  ],
  "2.1 arcana max_tokens": [requests, "200 to 5000. The default is 1200."],
  "2.1 arcana voices": [requests, "The specification lists sixteen names."],

  "2.2 chunk": [answers, "The field data has one chunk of audio as base64."],
  "2.2 timestamps": [
    answers,
    "word_timestamps has the lists words, start and end, of equal length and order. Times are in seconds.",
  ],
  "2.2 done": [answers, "The field done is true."],

  "2.3 apiStatus": [answers, "ok if the API is healthy."],
  "2.3 timestamp": [answers, "The time in ISO 8601, in UTC."],
  "2.3 licenseStatus": [answers, "valid if the license is valid."],
  "2.3 modelReachable": [answers, "A boolean."],

  "4.1 Accept": [audio, "text/event-stream"],
  "4.1 Request fields": [requests, "All except saveOovs."],
  "4.1 audioFormat": [requests, "mp3, mulaw or pcm."],
  "4.1 samplingRate": [requests, "4000 to 44100. The default is 22050."],
  "4.1 Response": [answers, "The events chunk, then timestamps, then done."],
  "4.2 Accept": [audio, "application/json"],
  "4.2 audioFormat": [requests, "Required, wav."],
  "4.2 Request fields": [requests, "All. samplingRate is 4000 to 44100, the default is 22050."],
  "4.2 Response": [audio, "A JSON body."],
  "4.3 Accept": [audio, "application/json"],
  "4.3 audioFormat": [audio, "Required, ogg."],
  "4.3 samplingRate": [requests, "Required: 8000, 12000, 16000 or 24000."],
  "4.3 Other request fields": [answers, "All."],
  "4.3 Response": [audio, "A JSON body."],
  "4.4 Accept": [audio, "audio/pcm"],
  "4.4 Request fields": [requests, "All. samplingRate is 4000 to 44100, the default is 16000."],
  "4.4 Response": [audio, "The bytes of the PCM audio."],
  "4.5 Accept": [audio, "audio/wav"],
  "4.5 Request fields": [requests, "The fields of arcana."],
  "4.5 Response": [audio, "A RIFF WAVE header, then 16-bit little-endian samples, as a stream."],

  "4.6 /health": [answers, "The API on port 8000 returns the health object."],
  "4.6 /readyz": [answers, "arcana on port 8080 returns ok."],
  "4.6 /ping": [answers, "mist on port 8080 returns pong."],
  "4.6 /metrics": [answers, "mist on port 8080 returns metrics in Prometheus text format."],
  "4.6 /metrics of vLLM": [
    "the generator in the arcana image",
    "vLLM in the arcana container serves it on GENERATOR_VLLM_PORT.",
  ],
  "4.6 /invocations": [answers, "mist on port 8080 accepts POST."],
  "4.6 http_requests_total": [answers, "A counter with the labels endpoint, http_status and method."],
  "4.6 http_errors_total": [
    answers,
    "A counter with the labels endpoint, error_message, http_status and method.",
  ],

  "5.1": [answers, "Every request has the header Authorization: Bearer <API_KEY>."],
  "6.1": [answers, "Lines with event: have the name, lines with data: have the payload in JSON."],
  "6.2": [answers, "The event done ends the stream."],
  "6.3": [engineMetrics, "arcana exports five OpenTelemetry metrics."],
  "6.4": [engineMetrics, "Three environment variables configure the export."],
  "7.1": [answers, "HTTP errors are counted by endpoint, status, method and message."],
  "7.2": [requests, "A request is invalid if lang does not match the voice, or if a value breaks its rule."],

  "8 mist text": [requests, "At most 500 characters."],
  "8 mist text in the dashboard": ["the limit of the dashboard", "At most 1,000 characters."],
  "8 arcana text": [requests, "The length is not limited."],
  "8 arcana text in the dashboard": ["the limit of the dashboard", "At most 3,000 characters."],
  "8 mist samplingRate": [requests, "4000 to 44100."],
  "8 ogg samplingRate": [requests, "8000, 12000, 16000 or 24000."],
  "8 arcana cloud samplingRate": [requests, "8000, 16000, 22050, 24000, 44100, 48000 or 96000."],
  "8 arcana self-hosted samplingRate": [audio, "Any rate."],
  "8 max_tokens": [requests, "200 to 5000. The default is 1200."],
  "8 top_p": [requests, "Above 0, at most 1."],
  "8 OOV review delay": ["the Words page of the dashboard", "At most 15 minutes."],
  "9.1": [answers, "The path begins with /v1."],
  "9.2": [requests, "The model is selected by modelId."],
} as const;

/** The number of rows of each table of the specification, so that a missing rule is detected. */
export const tableRows: Readonly<Record<string, number>> = {
  "2.1 mist ": 12,
  "2.1 arcana ": 10 + 1, // This includes the list of names below the table.
  "2.2 ": 3,
  "2.3 ": 4,
  "4.1 ": 5,
  "4.2 ": 4,
  "4.3 ": 5,
  "4.4 ": 3,
  "4.5 ": 3,
  "4.6 /": 6,
  "4.6 http_": 2,
  "8 ": 11,
};

const decisions = {
  "Accept by q-values": [requests, "Accept with q-values selects the variant (RFC 9110)."],
  Vary: [audio, "Every response of the endpoint has the header Vary: Accept."],
  "events default": [requests, "The default format of an event stream is mp3."],
  "JSON shape": [
    audio,
    "The only field is audioContent, in base64. The formats mp3, mulaw and pcm are supported too.",
  ],
  "JSON needs audioFormat": [requests, "A request for application/json must set audioFormat."],
  "no Accept": [
    requests,
    "If Accept is absent, */* or an unknown type that is not audio, the response is JSON, by default with wav.",
  ],
  "raw PCM": [answers, "A stream of mono signed 16-bit little-endian samples."],
  "44 bytes": [
    audio,
    "The header of a streamed WAV has 44 bytes, which the server sends together with the first audio.",
  ],
  "audio/*": [audio, "The response is a streamed WAV."],
  "audio/mpeg": [audio, "The response is a streamed MP3, also for audio/mp3."],
  "audio/ogg": [audio, "The response is a streamed Ogg Opus. Pre-skip and granule give the exact length."],
  "audio/x-mulaw": [audio, "The response is streamed mu-law at any rate."],
  "audio/basic": [requests, "The rate is always 8000 Hz, also for audio/PCMU."],
  "406": [requests, "If Accept has only unsupported audio types, the error 406 lists the supported ones."],
  "audioFormat ignored": [requests, "audioFormat is ignored if Accept determines the format."],
  "modelId absent": [requests, "The default model is arcana for audio/wav, and mist otherwise."],
  "lang absent": [requests, "The default is the language of the voice."],
  null: [requests, "A field with the value null counts as absent."],
  "every model, every variant": [answers, "Each of the three models supports each form of response."],
  "default rates": [
    requests,
    "Raw PCM has 16000 Hz, or 24000 Hz for arcana. All other forms have 22050 Hz, or 24000 Hz for arcana.",
  ],
  "ogg names its rate": [requests, "samplingRate is required for ogg in every variant."],
  "cloud arcana": [
    requests,
    "With the cloud profile, arcana allows only the listed rates, and no speedAlpha.",
  ],
  "self-hosted arcana rates": [requests, "Every integer from 1 to a configurable limit (384000)."],
  "typical is no limit": [
    requests,
    "The limits are repetition_penalty > 0, temperature >= 0 and 0 < top_p <= 1.",
  ],
  "unknown fields": [requests, "The server ignores unknown fields."],
  "strict fields": [requests, "The server validates known fields: type, range, enum, voice and language."],
  "nothing clamped": [
    requests,
    "The server never clamps a value, and never replaces a model or a voice by another.",
  ],
  reduceLatency: [requests, "reduceLatency is an alias of noTextNormalization."],
  "ISO 639": [requests, "Codes of ISO 639-1 and of ISO 639-3 are accepted."],
  not_required: [
    serverRules,
    "licenseStatus is not_required if no license is required, and every request is served.",
  ],
  saveOovs: [requests, "Supported in every variant except the event stream, which ignores it."],
  "the other model's fields": [requests, "The server ignores fields of another model."],
  "MP3 rates": [
    audio,
    "The lowest of nine rates that is at least the requested rate, or 48000. The response names the rate.",
  ],
  "answer headers": [answers, "Responses have X-Sampling-Rate, X-Request-Id, X-Voice and X-Model."],
  "Server-Timing": [audio, "Server-Timing has the time to first audio."],
  "word times": [answers, "Times are in seconds of the audio, with one entry for each written word."],
  "code points": [requests, "The length of a text counts Unicode code points."],
  "body limit": [answers, "A setting. The default is 16 MiB."],
  "flat memory": [
    backPressure,
    "The memory of a streamed response does not depend on the length of the text.",
  ],
  "JSON limit": [
    answers,
    "A setting. The default is 64 MiB of audio. The error above the limit suggests a stream.",
  ],
  "problem document": [
    answers,
    "RFC 9457: type, title, status, detail, code, requestId and errors[]. The media type is never an audio type.",
  ],
  "documented errors": [docs, "docs/reference/errors.md lists every code of the error registry."],
  "400": [requests, "The JSON is malformed, or a field is invalid. A JSON pointer names the field."],
  "401": [answers, "With WWW-Authenticate: Bearer. Unknown, expired and revoked keys get the same response."],
  "403": [serverRules, "The scope of the key or the license does not allow the request."],
  "404": [answers, "The path does not exist."],
  "405": [answers, "The method is not allowed. Allow lists the allowed methods."],
  "413": [answers, "The body, or the audio of a JSON response, is too large."],
  "415": [answers, "The body is not application/json, or is compressed."],
  "422 never": [requests, "The status for an invalid field is 400."],
  "429": [quotas, "With Retry-After and the RateLimit headers."],
  "500": [answers, "The response exposes no internals."],
  "502": [speech, "The model failed."],
  "503": [answers, "The server is saturated or draining, or the model is unreachable. With Retry-After."],
  "504": [speech, "The deadline of the request passed."],
  "late failure of events": [answers, "The stream ends with the event error, and without done."],
  "late failure of audio": [answers, "The connection is aborted without a terminating chunk."],
  "hang up": [speech, "If the client closes the connection, synthesis stops within one chunk."],
  pull: [backPressure, "A slow client slows the engine down."],
  "first phrase first": [
    plan,
    "Long text is synthesized sentence by sentence. A short first phrase is sent first.",
  ],
  admission: [modelTier, "Each model has a bounded queue with a deadline."],
  pauses: [requests, "A pause is digital silence of the given milliseconds."],
  phonemes: [
    requests,
    "The text uses the phonetic alphabet. The error for invalid phonemes has their position.",
  ],
  "inline pairs": [
    requests,
    "The values of inlineSpeedAlpha apply to the bracketed words in order. Another number of values is a 400.",
  ],
  "brackets off": [requests, "If an option is off, its brackets are ordinary text."],
  "speedAlpha both ways": [requests, "A value below 1 is faster with mist, and slower with arcana."],
  "GET /v1/voices": [answers, "Returns the voices."],
  "GET /v1/models": [answers, "Returns the models."],
  "GET /openapi.json": [answers, "An OpenAPI 3.1 document that is generated from the validation schemas."],
  "the OpenAI-compatible API": [
    answers,
    "POST /v1/audio/speech with voice, speed, response_format (mp3, opus, wav, pcm) and server-sent events.",
  ],
  "OpenAI's errors": [answers, "The problem document also has error: {message, type, code}."],
  "OpenAI's clients": [clients, "The clients need only another base URL."],
  "/health": [
    answers,
    "The response has four fields. The status is 200 if any model can serve, and otherwise 503.",
  ],
  "/livez and /ready": [answers, "Served on port 8000."],
  "/readyz and /ping": [answers, "Served by both model tiers. They succeed after the warm-up."],
  "/ready of a model": [answers, "Succeeds if the engine is up and the pod does not drain."],
  "/metrics": [answers, "Served by every container."],
  "bounded error_message": [answers, "The values of error_message are codes of the error registry."],
  "/invocations": [
    answers,
    "Both model tiers serve it with the internal token. The response consists of frames.",
  ],
  ORCA: [answers, "Responses have the header endpoint-load-metrics."],
  "no CORS": [answers, "There are no CORS headers, because API keys do not belong in browsers."],
  "request ID": [answers, "The server keeps a valid request ID of the client, and otherwise creates one."],
} as const;

export type RuleId = keyof typeof specification | keyof typeof decisions;

/** Each rule with the test file that exercises it, or with the component that implements it. */
export const heldBy = Object.entries({ ...specification, ...decisions }).map(
  ([rule, [holder]]) => [rule, holder] as const,
);
