import type { Boundary } from "../../contract/text/sentences.ts";

/** A token of a phrase that may still grow. */
export interface PhraseToken {
  readonly text: string;
  /** The number of characters from the start of the phrase to the end of the token. */
  readonly end: number;
  readonly boundary: Boundary;
}

/** The rules for the end of one phrase. */
export interface PhraseLimits {
  /** Returns whether the phrase may end at the end of a clause. */
  endsAtClause(tokens: readonly PhraseToken[]): boolean;
  /** Returns whether the phrase is too long. */
  isFull(tokens: readonly PhraseToken[]): boolean;
  /** Returns the number of tokens after which a phrase that is too long is cut. */
  cutPlace(tokens: readonly PhraseToken[]): number;
}

export interface LimitOptions {
  /** The ISO 639-3 code of the language. */
  readonly language: string;
  readonly quickStart: boolean;
  readonly growth?: number | undefined;
}

/**
 * The highest number of tokens and characters of a phrase. A phrase must be long enough for a natural melody,
 * and short enough to be held in memory.
 */
const maxPhraseTokens = 28;
const maxPhraseCharacters = 240;
/**
 * The highest number of tokens of the first phrase. The first phrase is short, so that the first audio is
 * sent early.
 */
const maxFirstPhraseTokens = 12;
/** A sentence that is longer than the first phrase by at most this number of tokens is not divided. */
const maxStumpTokens = 4;
const quickFirstPhrase = { least: 4, most: 10 };

/**
 * The length in characters of the first phrase, for an engine that is only slightly faster than real time.
 */
const firstPaced = { least: 14, most: 32 };
/**
 * The length in characters that every later phrase may have. A shorter phrase would have no natural melody.
 */
const leastPaced = 32;
/** The factor by which a sentence may exceed the limit without being divided. */
const pacedTolerance = 1.25;

/** The words before which a break in a sentence sounds natural, by ISO 639-3 code. */
const partStarts: Readonly<Record<string, ReadonlySet<string>>> = {
  eng: words(`and or but nor so yet because although though while when where if unless until since that which who whose what how why as than
    in on at by for with from to into onto of over under about after before through during without across near behind between`),
  spa: words(`y e o u pero sino porque aunque mientras cuando donde si que quien cual cuyo como pues
    en con por para desde hasta sin sobre bajo entre según durante hacia contra tras`),
  fra: words(`et ou mais ni car donc parce quoique pendant quand lorsque où si que qui dont comme puisque
    en dans avec par pour depuis sans sur sous entre selon vers contre chez avant après`),
  ita: words(`e ed o ma né perché benché mentre quando dove se che chi cui come
    in nel nella con per da dal dalla senza su sul sulla sotto tra fra secondo durante verso contro`),
  por: words(`e ou mas nem porque embora enquanto quando onde se que quem cujo como pois
    em no na com por para desde até sem sobre sob entre segundo durante contra após`),
  hin: words("और या लेकिन मगर परंतु क्योंकि कि जब जहाँ अगर यदि तो जो जिसने जिसके ताकि जबकि"),
};
const noWords: ReadonlySet<string> = new Set();

function words(list: string): ReadonlySet<string> {
  return new Set(list.trim().split(/\s+/u));
}

/** Returns the limits of the first phrase of a text. */
export function firstLimits(options: LimitOptions): PhraseLimits {
  if (options.growth !== undefined) return paced(options, firstPaced, { isFirst: true });
  if (!options.quickStart) return byTokens(maxFirstPhraseTokens, maxStumpTokens, { isFirst: true });
  const { least, most } = quickFirstPhrase;
  const starts = options.language === "eng" ? partStartsOf(options) : noWords;
  return byTokens(most, 0, {
    isFirst: true,
    beginsPart: (text, index) => index >= least && starts.has(text),
  });
}

/**
 * Returns the limits of a later phrase.
 * @param characters the length of the previous phrase.
 */
export function nextLimits(options: LimitOptions, characters: number): PhraseLimits {
  if (options.growth === undefined) return byTokens(maxPhraseTokens, 0, { isFirst: false });
  const most = Math.max(leastPaced, options.growth * characters);
  return paced(options, { least: leastPaced / 2, most }, { isFirst: false });
}

function partStartsOf({ language }: LimitOptions): ReadonlySet<string> {
  return partStarts[language] ?? noWords;
}

interface TokenRules {
  /** Whether the phrase is the first of the text. The first phrase ends at the end of its first clause. */
  readonly isFirst: boolean;
  /** Returns whether a phrase that is too long may be cut before a word. */
  readonly beginsPart?: (text: string, index: number) => boolean;
}

/** Creates limits for an engine that is much faster than real time. */
function byTokens(
  most: number,
  stump: number,
  { isFirst, beginsPart = () => false }: TokenRules,
): PhraseLimits {
  return {
    endsAtClause: () => isFirst,
    isFull: (tokens) =>
      tokens.length > most + stump || (lengthOf(tokens) > maxPhraseCharacters && tokens.length > 1),
    cutPlace: (tokens) => {
      const clause = tokens.findLastIndex(({ boundary }, i) => boundary !== "none" && i < tokens.length - 1);
      if (clause >= 0) return clause + 1;
      const part = tokens.findIndex(({ text }, i) => beginsPart(text, i));
      return part > 0 ? part : Math.min(most, tokens.length - 1);
    },
  };
}

/**
 * Creates limits for an engine that is only slightly faster than real time. A phrase must be ready when the
 * previous phrase has been played. The first phrase ends at its first break, and later phrases end at the
 * last break within their limit.
 */
function paced(
  options: LimitOptions,
  { least, most: limit }: { readonly least: number; readonly most: number },
  { isFirst }: Pick<TokenRules, "isFirst">,
): PhraseLimits {
  const most = Math.min(maxPhraseCharacters / pacedTolerance, limit);
  const starts = partStartsOf(options);
  return {
    endsAtClause: (tokens) => isFirst && lengthOf(tokens) >= least,
    isFull: (tokens) =>
      tokens.length > 1 && (lengthOf(tokens) > most * pacedTolerance || tokens.length > maxPhraseTokens),
    cutPlace: (tokens) => {
      const breaks = tokens.flatMap(({ text }, index) => {
        const before = tokens[index - 1];
        if (!before || before.end < least) return [];
        return before.boundary !== "none" || starts.has(text.toLowerCase())
          ? [{ index, end: before.end }]
          : [];
      });
      const within = breaks.filter(({ end }) => end <= most);
      const selected = isFirst ? breaks[0] : (within.at(-1) ?? breaks[0]);
      if (selected) return selected.index;
      const fitting = tokens.filter(({ end }) => end <= most).length;
      return Math.max(1, Math.min(fitting, tokens.length - 1));
    },
  };
}

function lengthOf(tokens: readonly PhraseToken[]): number {
  return tokens.at(-1)?.end ?? 0;
}
