/** Parses the query of an upgrade, including common errors of clients. */

/** Clients write an absent value in these ways. */
const absentValues = new Set(["", "null", "None", "undefined"]);
const decimal = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;
const truths: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["1", true],
  ["false", false],
  ["0", false],
]);

/**
 * The parameters by name. The first value of a repeated name counts. A value that is not URL-encoded is kept
 * unchanged: some clients send brackets, commas and spaces raw, and a bad percent-escape is not an error.
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

/** The number of a parameter. Any other value is returned unchanged, so that the validation reports it. */
export function numberOrText(text: string | undefined): number | string | undefined {
  return text !== undefined && decimal.test(text.trim()) ? Number(text) : text;
}

/** The same for a boolean; Python clients write `True`. */
export function booleanOrText(text: string | undefined): boolean | string | undefined {
  return text === undefined ? undefined : (truths.get(text.trim().toLowerCase()) ?? text);
}
