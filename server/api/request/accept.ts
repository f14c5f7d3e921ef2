/** Parses `Accept` (RFC 9110, section 12.5.1). */

export interface MediaRange {
  /**
   * The media type in lower case, without parameters. The type may contain wildcards, for example `audio/*`.
   */
  readonly type: string;
  /** The weight (`q`) of the range, from 0 to 1. */
  readonly quality: number;
}

/** The highest number of ranges that are read, so that the work for a hostile header is bounded. */
const maxRanges = 100;

/** Returns the ranges in the order of the header. Invalid ranges are ignored. */
export function parseAccept(header: string): readonly MediaRange[] {
  return header
    .split(",", maxRanges)
    .map(parseRange)
    .filter((range) => range !== undefined);
}

function parseRange(text: string): MediaRange | undefined {
  const [type = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  if (!/^([\w!#$&^.+-]+\/[\w!#$&^.+-]+|[\w!#$&^.+-]+\/\*|\*\/\*)$/.test(type)) return undefined;
  const weight = parameters.find((parameter) => /^q\s*=/.test(parameter));
  return { type, quality: weight === undefined ? 1 : parseWeight(weight.replace(/^q\s*=\s*/, "")) };
}

/**
 * Parses a weight. The parser accepts more than the three digits of RFC 9110, because some clients send more.
 * An invalid weight counts as 1, the default of the RFC.
 */
function parseWeight(text: string): number {
  return /^(\d+(\.\d*)?|\.\d+)$/.test(text) ? Math.min(1, Number(text)) : 1;
}

export interface Match {
  readonly quality: number;
  /** The specificity is 3 for an exact type, 2 for a range such as `audio/*`, and 1 for any type. */
  readonly specificity: number;
  /** The position of the range in the header. */
  readonly position: number;
}

/** Finds the most specific range that matches one of the types. */
export function matchTypes(ranges: readonly MediaRange[], types: readonly string[]): Match | undefined {
  let best: Match | undefined;
  for (const [position, { type, quality }] of ranges.entries()) {
    const specificity = Math.max(...types.map((offered) => specificityOf(type, offered)));
    if (specificity > (best?.specificity ?? 0)) best = { quality, specificity, position };
  }
  return best;
}

function specificityOf(range: string, type: string): number {
  if (range === type) return 3;
  if (range === "*/*") return 1;
  return range.endsWith("/*") && type.startsWith(range.slice(0, -1)) ? 2 : 0;
}
