/** Messages that the server sent with the page, with numbers in the reader's format. */
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

/** An error with a message in the language of the page. */
export class LocalizedError extends Error {}

/** Like `fetch`, which throws a TypeError without a response. */
export async function send(url, init) {
  try {
    return await fetch(url, init);
  } catch (error) {
    throw error instanceof TypeError ? new LocalizedError(client.unreachable) : error;
  }
}

/**
 * Errors in the middle of a stream are in English, and browsers have their own texts: only a page in English
 * shows them.
 */
export function brokenOff(message) {
  return (lang.startsWith("en") && message) || client.brokeOff;
}

export function messageOf(error) {
  if (error instanceof LocalizedError) return error.message;
  console.error(error);
  return brokenOff(error.message);
}
