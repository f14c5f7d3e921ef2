import type { Invocation } from "../../../contract/speech.ts";
import { type Aliases, firstKnownModel } from "../../request/aliases.ts";
import type { SegmentMode } from "../segmentation.ts";
import { readSettings, type SocketRules, type SocketSettings } from "../socket-settings.ts";
import { readCustomLexicon } from "./custom-lexicon.ts";
import { type SplitStrategy, type SynthesisParameters, splitStrategyOf } from "./schema.ts";

/** The default sampling rate in Hz. */
const defaultRate = 24_000;

const segments: Readonly<Record<SplitStrategy, SegmentMode>> = {
  sentence: "immediate",
  accumulateSentence: "bySentence",
  none: "never",
};

export interface ContextSettings {
  readonly socket: SocketSettings;
  /**
   * The text of the `start` message. The value is undefined if the client sends the text in separate
   * messages.
   */
  readonly wholeText: string | undefined;
  /** Whether each text of the client is a complete sentence. A sentence may end without white space. */
  readonly textsAreSentences: boolean;
  readonly withTimestamps: boolean;
}

/**
 * Validates the parameters of a context by the rules of an HTTP request.
 * @param modelId the model that the connection names. The value is undefined if the speaker determines the
 * model.
 * @throws Failure `invalid_request`.
 */
export function readContextSettings(
  start: SynthesisParameters,
  modelId: string | undefined,
  rules: SocketRules,
): ContextSettings {
  const strategy = splitStrategyOf(start);
  const wholeText = start.text === "" ? undefined : start.text;
  const segment = wholeText === undefined ? segments[strategy] : "immediate";
  const settings = readSettings(parametersOf(start, modelId, segment), rules);
  return {
    socket: withLexicon(settings, readCustomLexicon(start.customLexicon)),
    wholeText,
    textsAreSentences: strategy === "sentence",
    withTimestamps: start.timestamps?.enable ?? false,
  };
}

function withLexicon(settings: SocketSettings, lexicon: Invocation["lexicon"]): SocketSettings {
  if (!lexicon) return settings;
  const { speech } = settings;
  return { ...settings, speech: { ...speech, invocation: { ...speech.invocation, lexicon } } };
}

/**
 * Returns the parameters with the names of the query. Empty values are left out, because some clients send an
 * empty value for an absent parameter.
 */
function parametersOf(
  { language, speaker, audioParameters, mistParameters }: SynthesisParameters,
  modelId: string | undefined,
  segment: SegmentMode,
): ReadonlyMap<string, string> {
  const parameters = {
    modelId,
    segment,
    speaker,
    lang: language,
    audioFormat: audioParameters?.audioFormat,
    samplingRate: unlessZero(audioParameters?.samplingRate) ?? defaultRate,
    timeScaleFactor: unlessZero(audioParameters?.timeScaleFactor),
    pauseBetweenBrackets: mistParameters?.pauseBetweenBrackets,
    phonemizeBetweenBrackets: mistParameters?.phonemizeBetweenBrackets,
    inlineSpeedAlpha: mistParameters?.inlineTimeScaleFactors.join(", "),
    saveOovs: mistParameters?.saveOovs,
  };
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "");
  return new Map(given.map(([name, value]) => [name, String(value)]));
}

function unlessZero(value: number | undefined): number | undefined {
  return value === 0 ? undefined : value;
}

/** Merges the parameters of `start` over the defaults of the connection. A nested message is replaced completely. */
export function mergeDefaults(
  defaults: SynthesisParameters | undefined,
  start: SynthesisParameters,
): SynthesisParameters {
  if (!defaults) return start;
  const customLexicon = start.customLexicon.length > 0 ? start.customLexicon : defaults.customLexicon;
  return { ...defaults, ...start, customLexicon };
}

/** Matches the first label of the host, which may be the name of a model. */
const hostModel = /^(\w+)\./;

/** Returns the model that the connection names in its path, its query or its host, in this order of priority. */
export function modelOfConnection(
  pathModel: string | undefined,
  queryModel: string | undefined,
  host: string | undefined,
  aliases: Aliases,
): string | undefined {
  return firstKnownModel([pathModel, queryModel, hostModel.exec(host ?? "")?.[1]], aliases);
}
