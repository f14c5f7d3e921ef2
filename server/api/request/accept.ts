/** Parses `Accept` (RFC 9110, section 12.5.1). */

export interface MediaRange {
  /** Lower case, for example `audio/wav`. A range has stars. Parameters except `q` are removed. */
  readonly type: string;
  /** From 0 to 1. */
  readonly quality: number;
}

/** Bounds the work for a hostile header. */
const maxRanges = 100;

/** Ranges in the order of the header. Invalid parts are ignored. */
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
 * A weight may have more than three digits, as some clients send. A malformed one counts as 1, as if it were
 * absent.
 */
function parseWeight(text: string): number {
  return /^(\d+(\.\d*)?|\.\d+)$/.test(text) ? Math.min(1, Number(text)) : 1;
}

export interface Match {
  readonly quality: number;
  /** 3 is the type itself, 2 its family, 1 any type. */
  readonly specificity: number;
  /** Position in the header. */
  readonly position: number;
}

/** The most specific range that matches one of the types. */
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
