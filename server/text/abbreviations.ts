import type { WrittenToken } from "./tokens.ts";

/** English titles and the like, in full: an engine may take the dot for the end of the sentence. */
const english: Readonly<Record<string, string>> = {
  dr: "doctor",
  mr: "mister",
  mrs: "missus",
  ms: "miz",
  prof: "professor",
  sr: "senior",
  jr: "junior",
  gen: "general",
  col: "colonel",
  capt: "captain",
  lt: "lieutenant",
  sgt: "sergeant",
  gov: "governor",
  sen: "senator",
  rep: "representative",
  rev: "reverend",
  vs: "versus",
  etc: "etcetera",
  approx: "approximately",
  dept: "department",
  inc: "incorporated",
  ltd: "limited",
  corp: "corporation",
};

/** The token as it is read; it still names the word as it was written. */
export function expandAbbreviation(token: WrittenToken, language: string): WrittenToken {
  if (language !== "eng" || !token.after.startsWith(".")) return token;
  const full = english[token.text.toLowerCase()];
  return full === undefined ? token : { ...token, text: full, after: token.after.slice(1) };
}
