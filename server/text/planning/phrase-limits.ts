import type { Boundary } from "../../contract/text/sentences.ts";

/** A token of a phrase in the making. */
export interface PhraseToken {
  readonly text: string;
  /** Characters of the phrase up to its end. */
  readonly end: number;
  readonly boundary: Boundary;
}

/** Rules for the end of one phrase. */
export interface PhraseLimits {
  /** Whether it may end at the end of a clause. */
  endsAtClause(tokens: readonly PhraseToken[]): boolean;
  /** Whether it is too long. */
  isFull(tokens: readonly PhraseToken[]): boolean;
  /** Tokens that remain of a phrase that is too long. */
  cutPlace(tokens: readonly PhraseToken[]): number;
}

export interface LimitOptions {
  /** ISO 639-3. */
  readonly language: string;
  readonly quickStart: boolean;
  readonly growth?: number | undefined;
}

/** One utterance of an engine: long enough for a good melody, short enough to hold in memory. */
const maxPhraseTokens = 28;
const maxPhraseCharacters = 240;
/** The first phrase is short, so that the first audio leaves early; a sentence that is hardly longer stays whole. */
const maxFirstPhraseTokens = 12;
const maxStumpTokens = 4;
const quickFirstPhrase = { least: 4, most: 10 };

/** Characters of the first phrase for an engine that is little faster than real time. */
const firstPaced = { least: 14, most: 32 };
/** A later phrase may always have this length. A shorter one would have no melody. */
const leastPaced = 32;
/** A sentence that is longer by this factor stays whole, and a break is searched for up to there. */
const pacedTolerance = 1.25;

/** Words that begin a part of a sentence: before them a break is no surprise. ISO 639-3. */
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

/** The limits of the first phrase of a text. */
export function firstLimits(options: LimitOptions): PhraseLimits {
  if (options.growth !== undefined) return paced(options, firstPaced, { isFirst: true });
  if (!options.quickStart) return byTokens(maxFirstPhraseTokens, maxStumpTokens, { isFirst: true });
  const { least, most } = quickFirstPhrase;
  const starts = options.language === "eng" ? partStartsOf(options) : noWords;
  return byTokens(most, 0, {
    isFirst: true,
    beginsPart: (text, place) => place >= least && starts.has(text),
  });
}

/** @param characters of the phrase before it. */
export function nextLimits(options: LimitOptions, characters: number): PhraseLimits {
  if (options.growth === undefined) return byTokens(maxPhraseTokens, 0, { isFirst: false });
  const most = Math.max(leastPaced, options.growth * characters);
  return paced(options, { least: leastPaced / 2, most }, { isFirst: false });
}

function partStartsOf({ language }: LimitOptions): ReadonlySet<string> {
  return partStarts[language] ?? noWords;
}

interface TokenRules {
  /** The first phrase ends at its first clause. */
  readonly isFirst: boolean;
  /** Whether it may end before this word if it would grow too long. */
  readonly beginsPart?: (text: string, place: number) => boolean;
}

/** For engines that are much faster than real time. */
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
 * For an engine that is little faster than real time: a phrase must be ready when the one before has been played. The
 * first phrase ends at the first break, and later ones at the last break within their length.
 */
function paced(
  options: LimitOptions,
  { least, most: wanted }: { readonly least: number; readonly most: number },
  { isFirst }: Pick<TokenRules, "isFirst">,
): PhraseLimits {
  const most = Math.min(maxPhraseCharacters / pacedTolerance, wanted);
  const starts = partStartsOf(options);
  return {
    endsAtClause: (tokens) => isFirst && lengthOf(tokens) >= least,
    isFull: (tokens) =>
      tokens.length > 1 && (lengthOf(tokens) > most * pacedTolerance || tokens.length > maxPhraseTokens),
    cutPlace: (tokens) => {
      const places = tokens.flatMap(({ text }, place) => {
        const before = tokens[place - 1];
        if (!before || before.end < least) return [];
        return before.boundary !== "none" || starts.has(text.toLowerCase())
          ? [{ place, end: before.end }]
          : [];
      });
      const within = places.filter(({ end }) => end <= most);
      const found = isFirst ? places[0] : (within.at(-1) ?? places[0]);
      if (found) return found.place;
      const fitting = tokens.filter(({ end }) => end <= most).length;
      return Math.max(1, Math.min(fitting, tokens.length - 1));
    },
  };
}

function lengthOf(tokens: readonly PhraseToken[]): number {
  return tokens.at(-1)?.end ?? 0;
}
