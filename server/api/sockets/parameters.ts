/** Parses the query of an upgrade, and tolerates common errors of clients. */

/** Clients send these values for an absent parameter. */
const absentValues = new Set(["", "null", "None", "undefined"]);
const decimal = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;
const truths: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["1", true],
  ["false", false],
  ["0", false],
]);

/**
 * Returns the parameters by name. If a name is repeated, the first value counts. A value with an invalid
 * percent-escape is kept unchanged, because some clients do not encode their values.
 */
export function readParameters(query: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  for (const pair of query.split("&")) {
    const [name = "", ...value] = pair.split("=");
    const text = decode(value.join("="));
    if (!absentValues.has(text) && !parameters.has(decode(name))) parameters.set(decode(name), text);
  }
  return parameters;
}

function decode(text: string): string {
  const spaced = text.replaceAll("+", " ");
  try {
    return decodeURIComponent(spaced);
  } catch {
    return spaced;
  }
}

/**
 * Returns the value as a number. Any other text is returned unchanged, and the validation rejects the text.
 */
export function numberOrText(text: string | undefined): number | string | undefined {
  return text !== undefined && decimal.test(text.trim()) ? Number(text) : text;
}

/**
 * Returns the value as a boolean. The case is ignored, because Python clients send `True`. Any other text is
 * returned unchanged.
 */
export function booleanOrText(text: string | undefined): boolean | string | undefined {
  return text === undefined ? undefined : (truths.get(text.trim().toLowerCase()) ?? text);
}
