import type { Token } from "../speech.ts";

/**
 * Abbreviations that precede a name and never end a sentence. The entries are in lower case and without the
 * dot.
 */
const leading = new Set(
  `dr mr mrs ms prof st sr sra srta dra sig dott mme mlle mm mgr gen col capt cpt lt sgt maj cmdr adm gov sen rep
   rev hon pres fr hr bzw ca nr no nos vol vs fig figs art abs ggf evtl inkl zzgl dhr mevr ir drs bijv blz p pp pag
   núm av avda ing arq lic str tel approx dept est ext mt ft al prof.ssa dott.ssa sig.ra sigg eng enf pág ex z s ul
   г ул им проф акад гр тов стр рис см т тел κ κα δρ καθ λεωφ οδ σελ τηλ डॉ श्री प्रो सं د أ م ص cad sok doç öğr bkz müh`.split(
    /\s+/u,
  ),
);
/** Abbreviations that end a sentence if the next word starts with a capital letter. */
const trailing = new Set(
  `etc inc ltd co corp jr bros ave blvd rd jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat
   sun usw usf ff enz itp itd tzn etcétera д др`.split(/\s+/u),
);
/** The languages in which a number and a dot are an ordinal ("am 3. Oktober"), by ISO 639-3 code. */
const ordinalDot = new Set([
  "deu",
  "pol",
  "ces",
  "tur",
  "dan",
  "nob",
  "fin",
  "hun",
  "slk",
  "hrv",
  "slv",
  "est",
]);

const ender = /[.!?…。！？．।॥؟۔።]/u;
const strongEnder = /[!?…。！？।॥؟።]/u;
const clause = /[,;:،؛、，；：—–]/u;
const lowerCase = /^[\p{Ll}]/u;

/** The unit that ends with a token: none, a clause, a sentence or a paragraph. */
export type Boundary = "none" | "clause" | "sentence" | "paragraph";

/** The properties of a token that determine the boundary after it. */
export interface BoundaryToken extends Pick<Token, "text" | "before" | "after"> {
  /** Whether an empty line follows. */
  readonly paragraphEnd: boolean;
}

/**
 * Returns the boundary between a token and the next token.
 * @param next the next token, or undefined at the end of the text.
 */
export function boundaryAfter(
  token: BoundaryToken,
  next: BoundaryToken | undefined,
  language: string,
): Boundary {
  if (token.paragraphEnd) return "paragraph";
  if (!next) return "sentence";
  if (endsSentence(token, next, language)) return "sentence";
  if (clause.test(token.after) || /^[(«„“]/u.test(next.before) || /[)»”]/u.test(token.after)) {
    return "clause";
  }
  return "none";
}

function endsSentence(token: BoundaryToken, next: BoundaryToken, language: string): boolean {
  if (strongEnder.test(token.after)) return !lowerCase.test(next.text) || !/["'”’»)]/u.test(token.after);
  if (!ender.test(token.after)) return false;
  return !isAbbreviation(token, next, language);
}

function isAbbreviation(token: BoundaryToken, next: BoundaryToken, language: string): boolean {
  if (!token.after.startsWith(".")) return false;
  const word = token.text.toLowerCase();
  if (leading.has(word)) return true;
  if (trailing.has(word)) return lowerCase.test(next.text);
  // A single capital letter is an initial.
  if (/^\p{Lu}$/u.test(token.text)) return !(language === "eng" && token.text === "I");
  return /^\d{1,2}$/u.test(token.text) && ordinalDot.has(language);
}
