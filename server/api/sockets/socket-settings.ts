import { type ModelId, models, type Profile } from "../../../config/contract/models.ts";
import type { ListedVoice } from "../../../config/contract/voices.ts";
import { Failure } from "../../contract/errors.ts";
import { type Aliases, isHigherFaster, resolveModel, resolveSpeaker } from "../request/aliases.ts";
import { readRequest, type SpeechRequest } from "../request/speech-request.ts";
import { type AudioFormat, isOpus, type StreamVariant } from "../request/variants.ts";
import { booleanOrText, numberOrText } from "./parameters.ts";
import { type SegmentMode, segmentModes } from "./segmentation.ts";
import type { Synthesis, TextMarkup } from "./text-session.ts";

/** The settings of one socket, which do not change while the socket is open. */
export interface SocketSettings {
  readonly segment: SegmentMode;
  /**
   * The origin of word timestamps: the start of each synthesis, or the start of all audio since the last
   * `done`.
   */
  readonly timestampBase: "synthesis" | "stream";
  /**
   * The duration of the speech relative to the usual duration. `speech.invocation.stretch` includes this
   * factor.
   */
  readonly timeScale: number;
  /** The voice, the model, the format and the rate of all syntheses. The text is a placeholder. */
  readonly speech: SpeechRequest;
  readonly parameters: ReadonlyMap<string, string>;
  readonly rules: SocketRules;
}

export interface SocketRules {
  readonly voices: readonly ListedVoice[];
  readonly profile: Profile;
  /** The highest sampling rate in Hz of a self-hosted arcana. */
  readonly highestRate: number;
  readonly aliases: Aliases;
}

/** The highest number of characters of one synthesis by the mist models on a socket. */
const longestMistText = 1000;
const opusRate = 24_000;
const timeScales = { least: 0.4, most: 2.5 };

const formatNames: Readonly<Record<AudioFormat, readonly string[]>> = {
  mp3: ["mp3", "mpeg", "audio/mpeg"],
  pcm: ["pcm", "l16", "audio/pcm", "audio/l16"],
  mulaw: ["mulaw", "ulaw", "pcmu", "audio/pcmu", "audio/x-mulaw"],
  wav: ["wav", "audio/wav"],
  ogg: ["ogg", "opus", "audio/ogg", "audio/ogg;codecs=opus"],
  webm: ["webm", "audio/webm", "audio/webm;codecs=opus"],
};
export const socketFormats = Object.keys(formatNames) as readonly AudioFormat[];

/**
 * Translates the parameters of the query, and validates them by the rules of an HTTP request.
 * @throws Failure `invalid_request` with a message about the first invalid parameter.
 */
export function readSettings(parameters: ReadonlyMap<string, string>, rules: SocketRules): SocketSettings {
  return {
    segment: readSegment(parameters),
    timestampBase: parameters.get("timestampBase") === "stream" ? "stream" : "synthesis",
    ...readSpeech(parameters, rules),
    parameters,
    rules,
  };
}

function readSegment(parameters: ReadonlyMap<string, string>): SegmentMode {
  const given = parameters.get("segment");
  const mode = segmentModes.find((name) => name === given);
  if (given !== undefined && !mode) throw invalid("segment", `must be one of ${segmentModes.join(", ")}`);
  return mode ?? (booleanOrText(parameters.get("immediate")) === true ? "immediate" : "bySentence");
}

function readSpeech(
  parameters: ReadonlyMap<string, string>,
  rules: SocketRules,
): Pick<SocketSettings, "speech" | "timeScale"> {
  const requested = parameters.get("modelId");
  const modelId = resolveModel(requested, parameters.get("speaker"), rules.voices, rules.aliases);
  const format = readFormat(parameters.get("audioFormat"));
  const variant: StreamVariant = {
    form: "stream",
    mediaType: "",
    format,
    defaultModel: modelId,
    defaultRate: (model) => models[model].defaultRate,
  };
  const speech = readRequest(readBody(parameters, modelId, format, rules), { ...rules, variant });
  const { invocation } = speech;
  const timeScale = readTimeScale(parameters, requested ?? modelId);
  const stretch = invocation.stretch * timeScale;
  return { speech: { ...speech, invocation: { ...invocation, stretch } }, timeScale };
}

function readBody(
  parameters: ReadonlyMap<string, string>,
  modelId: ModelId,
  format: AudioFormat,
  { voices, aliases }: SocketRules,
): Readonly<Record<string, unknown>> {
  const number = (name: string) => numberOrText(parameters.get(name));
  const switched = (name: string) => booleanOrText(parameters.get(name));
  return {
    modelId,
    speaker: resolveSpeaker(parameters.get("speaker"), modelId, voices, aliases),
    lang: parameters.get("lang"),
    text: "text follows",
    samplingRate: number("samplingRate") ?? (isOpus(format) ? opusRate : undefined),
    speedAlpha: readSpeed(number("speedAlpha"), parameters.get("modelId") ?? modelId, modelId),
    noTextNormalization: switched("noTextNormalization"),
    reduceLatency: switched("reduceLatency"),
    pauseBetweenBrackets: switched("pauseBetweenBrackets"),
    phonemizeBetweenBrackets: switched("phonemizeBetweenBrackets"),
    inlineSpeedAlpha: parameters.get("inlineSpeedAlpha"),
    saveOovs: switched("saveOovs"),
    repetition_penalty: number("repetition_penalty"),
    temperature: number("temperature"),
    top_p: number("top_p"),
    max_tokens: number("max_tokens"),
  };
}

/** Converts `speedAlpha` if the requested model and the used model have opposite directions of speed. */
function readSpeed(alpha: number | string | undefined, requested: string, modelId: ModelId) {
  const isTurned = isHigherFaster(requested) !== isHigherFaster(modelId);
  return typeof alpha === "number" && alpha !== 0 && isTurned ? 1 / alpha : alpha;
}

/**
 * Reads `timeScaleFactor`. A value below 1 is faster. Values out of range are clamped, and `mistv2` ignores
 * the factor.
 */
function readTimeScale(parameters: ReadonlyMap<string, string>, requested: string): number {
  const factor = numberOrText(parameters.get("timeScaleFactor"));
  if (typeof factor === "string") throw invalid("timeScaleFactor", "must be a number");
  if (factor === undefined || requested === "mistv2") return 1;
  return Math.min(timeScales.most, Math.max(timeScales.least, factor));
}

function readFormat(name: string | undefined): AudioFormat {
  if (name === undefined) return "wav";
  const normalized = name.toLowerCase().replaceAll(" ", "");
  const match = socketFormats.find((format) => formatNames[format].includes(normalized));
  if (match) return match;
  throw invalid("audioFormat", `must be one of ${socketFormats.join(", ")}`);
}

/**
 * Returns the highest number of characters of one synthesis. The result is infinite for arcana, which accepts
 * any length.
 */
export function longestTextOf({ speech }: SocketSettings): number {
  const isBounded = models[speech.invocation.modelId].maxTextLength !== undefined;
  return isBounded ? longestMistText : Number.POSITIVE_INFINITY;
}

/**
 * Creates the request for one synthesis.
 * @throws Failure `invalid_request` if the markup of its text is invalid.
 */
export function speechRequestFor(settings: SocketSettings, { text, markup }: Synthesis): SpeechRequest {
  const speech = isEmpty(markup)
    ? settings.speech
    : readSpeech(withMarkup(settings, markup), settings.rules).speech;
  const { invocation } = speech;
  const spoken = invocation.pauseBetweenBrackets ? withWholePauses(text) : text;
  const inlineStretch = pairWithBrackets(spoken, invocation.inlineStretch);
  return { ...speech, invocation: { ...invocation, text: spoken.toWellFormed(), inlineStretch } };
}

function isEmpty(markup: TextMarkup): boolean {
  return Object.keys(markup).length === 0;
}

function withMarkup({ parameters }: SocketSettings, markup: TextMarkup): ReadonlyMap<string, string> {
  const own = Object.entries(markup).map(([name, value]) => [name, String(value)] as const);
  return new Map([...parameters, ...own]);
}

/** Rounds the durations of pauses, because some clients write 200 milliseconds as `<200.0>`. */
function withWholePauses(text: string): string {
  return text.replace(/<(\d+\.\d*)>/g, (_, duration: string) => `<${Math.round(Number(duration))}>`);
}

/**
 * Returns one value for each word in square brackets. The values of a socket apply to all its texts, so their number
 * may differ from the number of brackets. A word without a value keeps its speed.
 */
function pairWithBrackets(text: string, values: readonly number[]): readonly number[] {
  if (values.length === 0) return values;
  return Array.from(text.matchAll(/\[[^[\]]*\]/g), (_, at) => values[at] ?? 1);
}

function invalid(name: string, problem: string): Failure {
  const detail = `${problem}.`;
  return new Failure("invalid_request", `${name} ${detail}`, { fields: [{ pointer: `/${name}`, detail }] });
}
