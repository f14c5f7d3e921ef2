/**
 * The rules of the interface: each row of the specification's tables, each numbered sentence about the
 * server, and each decision of this project. Each rule names the test file that holds it. That file calls
 * `heldRules`, and fails unless its tests exercised all its rules. A rule for another component names that
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
  "1.1": [audio, "One JSON request to one endpoint gives audio."],
  "1.2": [audio, "The form of the answer depends on Accept and, for some, on audioFormat."],
  "1.3": [
    requests,
    "mist (the default), mistv2 and arcana are selectable; mist takes markup, arcana sampling.",
  ],
  "1.5": [requests, "Nothing is stored: every call is a stateless request."],

  "2.1 Content-Type": [requests, "application/json"],
  "2.1 mist speaker": [requests, "Required. One of the voices published for the model."],
  "2.1 mist text": [requests, "Required. The text to speak."],
  "2.1 mist modelId": [requests, "mist or mistv2; mist unless given."],
  "2.1 mist audioFormat": [requests, "mp3, mulaw, pcm (event stream); wav; ogg."],
  "2.1 mist lang": [requests, "Must match the language of the speaker."],
  "2.1 mist samplingRate": [
    requests,
    "4000 to 44100, 22050 unless given (16000 raw PCM); ogg: 8000, 12000, 16000, 24000, required.",
  ],
  "2.1 mist speedAlpha": [requests, "1.0 unless given; below is faster, above is slower."],
  "2.1 mist noTextNormalization": [requests, "False unless given; true leaves the text as it is written."],
  "2.1 mist pauseBetweenBrackets": [
    requests,
    "False unless given; true makes <N> a pause of N milliseconds.",
  ],
  "2.1 mist phonemizeBetweenBrackets": [
    requests,
    "False unless given; true reads a word in curly brackets as phonemes.",
  ],
  "2.1 mist inlineSpeedAlpha": [
    requests,
    "Comma-separated speeds for the words in square brackets, in order.",
  ],
  "2.1 mist saveOovs": [requests, "False unless given; on wav, ogg and audio/pcm, not on the event stream."],
  "2.1 arcana speaker": [requests, "Required. One of the flagship voices."],
  "2.1 arcana text": [requests, "Required. No length limit."],
  "2.1 arcana modelId": [requests, "Set to arcana."],
  "2.1 arcana lang": [requests, "Must match the language of the speaker."],
  "2.1 arcana repetition_penalty": [requests, "1.5 unless given; typical range 1 to 2."],
  "2.1 arcana temperature": [requests, "0.5 unless given; 0 is greedy; typical range 0 to 1."],
  "2.1 arcana top_p": [requests, "1 unless given; in (0, 1]."],
  "2.1 arcana samplingRate": [requests, "24000 unless given; cloud: a list of seven; self-hosted: any."],
  "2.1 arcana speedAlpha": [requests, "1 unless given; self-hosted only; below slows, above speeds up."],
  "2.1 arcana max_tokens": [requests, "1200 unless given; 200 to 5000."],
  "2.1 arcana voices": [requests, "The sixteen names."],

  "2.2 chunk": [answers, "data: one chunk of audio as base64."],
  "2.2 timestamps": [answers, "word_timestamps: words, start, end, of equal length and order, in seconds."],
  "2.2 done": [answers, "done: true."],

  "2.3 apiStatus": [answers, "ok when healthy."],
  "2.3 timestamp": [answers, "ISO 8601 in UTC."],
  "2.3 licenseStatus": [answers, "valid when licensed."],
  "2.3 modelReachable": [answers, "boolean"],

  "4.1 Accept": [audio, "text/event-stream"],
  "4.1 Request fields": [requests, "All but saveOovs."],
  "4.1 audioFormat": [requests, "mp3, mulaw or pcm."],
  "4.1 samplingRate": [requests, "4000 to 44100, 22050 unless given."],
  "4.1 Response": [answers, "chunks, then timestamps, then done."],
  "4.2 Accept": [audio, "application/json"],
  "4.2 audioFormat": [requests, "wav, required."],
  "4.2 Request fields": [requests, "All; samplingRate 4000 to 44100, 22050 unless given."],
  "4.2 Response": [audio, "A JSON body."],
  "4.3 Accept": [audio, "application/json"],
  "4.3 audioFormat": [audio, "ogg, required."],
  "4.3 samplingRate": [requests, "Required; 8000, 12000, 16000, 24000."],
  "4.3 Other request fields": [answers, "All."],
  "4.3 Response": [audio, "A JSON body."],
  "4.4 Accept": [audio, "audio/pcm"],
  "4.4 Request fields": [requests, "All; samplingRate 4000 to 44100, 16000 unless given."],
  "4.4 Response": [audio, "PCM bytes."],
  "4.5 Accept": [audio, "audio/wav"],
  "4.5 Request fields": [requests, "Those of arcana."],
  "4.5 Response": [audio, "A RIFF WAVE header, then 16-bit little-endian samples, as a stream."],

  "4.6 /health": [answers, "API, 8000: the health object."],
  "4.6 /readyz": [answers, "arcana, 8080: ok."],
  "4.6 /ping": [answers, "mist, 8080: pong."],
  "4.6 /metrics": [answers, "mist, 8080: Prometheus text."],
  "4.6 /metrics of vLLM": [
    "the generator's own route, in the arcana image",
    "A process inside the arcana container, GENERATOR_VLLM_PORT.",
  ],
  "4.6 /invocations": [answers, "mist, 8080: POST."],
  "4.6 http_requests_total": [answers, "A counter by endpoint, http_status, method."],
  "4.6 http_errors_total": [answers, "A counter by endpoint, error_message, http_status, method."],

  "5.1": [answers, "Every call carries Authorization: Bearer <API_KEY>."],
  "6.1": [answers, "Event names on event: lines, payloads in JSON on data: lines."],
  "6.2": [answers, "done ends the stream."],
  "6.3": [engineMetrics, "arcana emits five OpenTelemetry metrics."],
  "6.4": [engineMetrics, "Their export is configured by three environment variables."],
  "7.1": [answers, "HTTP errors are counted by endpoint, status, method and message."],
  "7.2": [requests, "A lang of another language, or a value outside its rule, makes the request invalid."],

  "8 mist text": [requests, "500 characters."],
  "8 mist text in the dashboard": ["the dashboard's own limit", "1,000 characters."],
  "8 arcana text": [requests, "Unlimited."],
  "8 arcana text in the dashboard": ["the dashboard's own limit", "3,000 characters."],
  "8 mist samplingRate": [requests, "4000 to 44100."],
  "8 ogg samplingRate": [requests, "8000, 12000, 16000 or 24000."],
  "8 arcana cloud samplingRate": [requests, "8000, 16000, 22050, 24000, 44100, 48000, 96000."],
  "8 arcana self-hosted samplingRate": [audio, "Any value."],
  "8 max_tokens": [requests, "200 to 5000, 1200 unless given."],
  "8 top_p": [requests, "Above 0, at most 1."],
  "8 OOV review delay": ["the dashboard's list of words", "Up to 15 minutes."],
  "9.1": [answers, "The path begins with /v1."],
  "9.2": [requests, "The model is selected by modelId."],
} as const;

/** The number of rows of each table of the specification, so that a missing rule is detected. */
export const tableRows: Readonly<Record<string, number>> = {
  "2.1 mist ": 12,
  "2.1 arcana ": 10 + 1, // includes the list of names below the table
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
  "Accept by q-values": [requests, "The variant is chosen by Accept with q-values (RFC 9110)."],
  Vary: [audio, "Every answer of the endpoint says Vary: Accept."],
  "events default": [requests, "An event stream is mp3 unless audioFormat is given."],
  "JSON shape": [audio, "One field, audioContent, in base64; also mp3, mulaw and pcm."],
  "JSON needs audioFormat": [requests, "application/json must name it."],
  "no Accept": [requests, "Absent, */* or an unknown type that is not audio: JSON, wav unless given."],
  "raw PCM": [answers, "Mono signed 16-bit little-endian, streamed."],
  "44 bytes": [audio, "A streamed WAV has 44 header bytes, in the same write as its first audio."],
  "audio/*": [audio, "Is a streamed WAV."],
  "audio/mpeg": [audio, "Also audio/mp3: streamed MP3."],
  "audio/ogg": [audio, "Streamed Ogg Opus, exact by pre-skip and granule."],
  "audio/x-mulaw": [audio, "Streamed mu-law at any rate."],
  "audio/basic": [requests, "8000 Hz only; also audio/PCMU."],
  "406": [requests, "Only audio types that are not offered: 406 naming those that are."],
  "audioFormat ignored": [requests, "Where Accept fixes the format."],
  "modelId absent": [requests, "arcana on audio/wav, mist elsewhere."],
  "lang absent": [requests, "The voice's own language."],
  null: [requests, "Is absent."],
  "every model, every variant": [answers, "Each of the three answers each form."],
  "default rates": [requests, "Raw PCM 16000 and 24000 (arcana); elsewhere 22050 and 24000."],
  "ogg names its rate": [requests, "On every variant."],
  "cloud arcana": [requests, "The listed rates and no speedAlpha."],
  "self-hosted arcana rates": [requests, "Every integer from 1 to a configurable ceiling (384000)."],
  "typical is no limit": [requests, "repetition_penalty > 0, temperature >= 0, top_p in (0, 1]."],
  "unknown fields": [requests, "Are ignored."],
  "strict fields": [requests, "Known fields are validated: type, range, enum, voice, language."],
  "nothing clamped": [requests, "No value is clamped, no model or voice put in another's place."],
  reduceLatency: [requests, "Is an alias of noTextNormalization."],
  "ISO 639": [requests, "639-1 and 639-3 both name a language."],
  not_required: [serverRules, "licenseStatus where no license is required: everything serves."],
  saveOovs: [requests, "Honoured on every variant but the event stream, where it is ignored."],
  "the other model's fields": [requests, "Are ignored."],
  "MP3 rates": [
    audio,
    "The smallest of nine that is at least the one asked for, else 48000; the response names the rate used.",
  ],
  "answer headers": [answers, "X-Sampling-Rate, X-Request-Id, the voice and model used."],
  "Server-Timing": [audio, "Carries the time to first audio."],
  "word times": [answers, "Seconds in the PCM timeline, one entry per written word."],
  "code points": [requests, "Length counts Unicode code points."],
  "body limit": [answers, "A setting, 16 MiB."],
  "flat memory": [backPressure, "On streamed answers, whatever the length of the text."],
  "JSON limit": [answers, "A setting, 64 MiB of audio; above it a refusal with a hint to stream."],
  "problem document": [
    answers,
    "RFC 9457: type, title, status, detail, code, requestId, errors[]; never an audio type.",
  ],
  "documented errors": [docs, "docs/reference/errors.md has every code of the registry."],
  "400": [requests, "Malformed JSON or an invalid field, named by JSON pointer."],
  "401": [answers, "WWW-Authenticate: Bearer; one answer for unknown, expired and revoked."],
  "403": [serverRules, "Scope or license."],
  "404": [answers, "Nothing at the path."],
  "405": [answers, "Another method, with Allow."],
  "413": [answers, "Body or JSON audio too large."],
  "415": [answers, "Not application/json, or compressed."],
  "422 never": [requests, "An invalid field is a 400."],
  "429": [quotas, "Retry-After and RateLimit headers."],
  "500": [answers, "No internals."],
  "502": [speech, "The model failed."],
  "503": [answers, "Saturated, draining or model not reachable, with Retry-After."],
  "504": [speech, "Deadline."],
  "late failure of events": [answers, "An error event and no done."],
  "late failure of audio": [answers, "The connection is aborted without a terminating chunk."],
  "hang up": [speech, "Stops synthesis within one chunk."],
  pull: [backPressure, "A slow listener slows the engine."],
  "first phrase first": [
    plan,
    "Long text is spoken sentence by sentence; the first short phrase leaves first.",
  ],
  admission: [modelTier, "A bounded queue with a deadline in front of each model."],
  pauses: [requests, "Exact digital silence in milliseconds."],
  phonemes: [requests, "The phonetic alphabet, with a position in the error when it does not parse."],
  "inline pairs": [requests, "[words] pair in order with inlineSpeedAlpha; too few or too many is a 400."],
  "brackets off": [requests, "With an option off its brackets are ordinary text."],
  "speedAlpha both ways": [requests, "Below 1 is faster on mist, slower on arcana."],
  "GET /v1/voices": [answers, "The voices."],
  "GET /v1/models": [answers, "The models."],
  "GET /openapi.json": [answers, "OpenAPI 3.1 from the schemas that validate."],
  "the OpenAI-compatible API": [
    answers,
    "POST /v1/audio/speech: voice, speed, response_format mp3, opus, wav, pcm; SSE.",
  ],
  "OpenAI's errors": [answers, "error: {message, type, code} beside the problem."],
  "OpenAI's clients": [clients, "Need only a base URL."],
  "/health": [answers, "Four fields; 200 while any model can serve, else 503."],
  "/livez and /ready": [answers, "On 8000."],
  "/readyz and /ping": [answers, "On both model tiers: yes once warmed."],
  "/ready of a model": [answers, "Engine up and not draining."],
  "/metrics": [answers, "On every container."],
  "bounded error_message": [answers, "Its values are codes of the registry."],
  "/invocations": [answers, "On both model tiers, for the internal token; the answer is frames."],
  ORCA: [answers, "Answers carry endpoint-load-metrics."],
  "no CORS": [answers, "Off: browsers are not let in, as keys do not belong there."],
  "request ID": [answers, "A caller's own is kept where it is sane, and made where it is not."],
} as const;

export type RuleId = keyof typeof specification | keyof typeof decisions;

/** The test file, or the component, that holds each rule. */
export const heldBy = Object.entries({ ...specification, ...decisions }).map(
  ([rule, [holder]]) => [rule, holder] as const,
);
