/** The messages of the page. The server sends the messages in the language of the user. */
export const client = JSON.parse(document.getElementById("content").dataset.words);
const { lang } = document.documentElement;
const wholes = new Intl.NumberFormat(lang, { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat(lang, { minimumFractionDigits: 1, maximumFractionDigits: 1 });

export const whole = (number) => wholes.format(number);
export const tenths = (number) => oneDigit.format(number);

/** Replaces names in braces. @param values the values by name. */
export function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** An error with a message in the language of the page. */
export class LocalizedError extends Error {}

/** Calls `fetch`. Without a response, `fetch` throws a TypeError, which becomes a localized error. */
export async function send(url, init) {
  try {
    return await fetch(url, init);
  } catch (error) {
    throw error instanceof TypeError ? new LocalizedError(client.unreachable) : error;
  }
}

/**
 * Returns the message for an interrupted stream. The parameter is in English, so pages in other languages
 * show a general message.
 */
export function brokenOff(message) {
  return (lang.startsWith("en") && message) || client.brokeOff;
}

export function messageOf(error) {
  if (error instanceof LocalizedError) return error.message;
  console.error(error);
  return brokenOff(error.message);
}
