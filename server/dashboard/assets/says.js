/** What the server sent along to be said, with numbers as the reader of the page writes them. */
export const client = JSON.parse(document.getElementById("content").dataset.words);
const { lang } = document.documentElement;
const wholes = new Intl.NumberFormat(lang, { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat(lang, { minimumFractionDigits: 1, maximumFractionDigits: 1 });

export const whole = (number) => wholes.format(number);
export const tenths = (number) => oneDigit.format(number);

/** @param text with names in braces. @param values by these names. */
export function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** An error whose message is in the language of the page. */
export class Told extends Error {}

/** Browsers word their own errors in English: that of a request without an answer, most of all. */
export function asTold(error) {
  if (error instanceof Told) return error.message;
  console.error(error);
  return client.unreachable;
}
