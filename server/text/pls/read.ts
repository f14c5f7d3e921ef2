import { SaxesParser, type SaxesTagNS } from "saxes";
import { languageOf } from "../../../config/contract/voices.ts";
import { readIpa } from "../ipa.ts";
import { lexiconWord, longestPhonemes } from "../lexicon.ts";
import { readPhonemes } from "../phonemes.ts";
import { type Alphabet, alphabets, isAlphabet, plsNamespace } from "./alphabets.ts";
import type { SpokenWord } from "./write.ts";

/** What is wrong in a file, where a person can put it right. */
export interface PlsProblem {
  /** From 1. */
  readonly line: number;
  readonly message: string;
}

export interface PlsLexicon {
  /** ISO 639-3. */
  readonly language: string;
  readonly words: readonly SpokenWord[];
}

export type PlsReading =
  | { readonly lexicon: PlsLexicon }
  /** The first of them, in the order of the file, and how many there are. */
  | { readonly problems: readonly PlsProblem[]; readonly count: number };

export interface PlsLimits {
  readonly words: number;
}

/** Elements within each other; PLS has three. What stands in metadata may have some more. */
const deepest = 16;
const keptProblems = 20;

/**
 * Reads PLS 1.0. Nothing that a file points to is opened, and no entity of its own is known: a document type is refused.
 * @param file UTF-8.
 */
export function readPls(file: Uint8Array, limits: PlsLimits): PlsReading {
  const document = new PlsDocument(limits);
  const parser = new SaxesParser({ xmlns: true });
  const here = (message: string) => new Unreadable({ line: parser.line, message });
  parser.on("error", ({ message }) => {
    const saying = message
      .replace(/^(\d+:)+ ?/, "")
      .replace(/\.$/, "")
      .slice(0, 100);
    throw here(`This cannot be read as XML near column ${parser.column}: ${saying}.`);
  });
  parser.on("xmldecl", ({ encoding }) => {
    if (encoding !== undefined && !/^utf-?8$/i.test(encoding)) {
      throw here(`The file must be UTF-8; it says that it is ${JSON.stringify(encoding)}.`);
    }
  });
  parser.on("doctype", () => {
    throw here("A document type (<!DOCTYPE …>) is not read, nor are entities of one's own; take it out.");
  });
  parser.on("opentag", (tag) => document.open(tag, parser.line));
  parser.on("closetag", () => document.close(parser.line));
  parser.on("text", (text) => document.text(text));
  parser.on("cdata", (text) => document.text(text));
  try {
    parser.write(decoded(file)).close();
    return document.reading();
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    const problems = [...document.problems, error.problem].slice(-keptProblems);
    return { problems, count: document.problemCount + 1 };
  }
}

/** The rest of the file cannot be made sense of. */
class Unreadable extends Error {
  readonly problem: PlsProblem;

  constructor(problem: PlsProblem) {
    super(problem.message);
    this.problem = problem;
  }
}

function decoded(file: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(file);
  } catch {
    throw new Unreadable({ line: 1, message: "The file must be UTF-8, and is not." });
  }
}

interface Piece {
  readonly text: string;
  readonly line: number;
}

interface Lexeme {
  readonly line: number;
  readonly graphemes: Piece[];
  readonly phonemes: (Piece & { readonly alphabet: string; readonly isPreferred: boolean })[];
}

interface Placed extends SpokenWord {
  readonly line: number;
}

/** What has been understood of a file. */
class PlsDocument {
  readonly problems: PlsProblem[] = [];
  problemCount = 0;
  readonly #limits: PlsLimits;
  readonly #open: SaxesTagNS[] = [];
  readonly #words = new Map<string, Placed>();
  #language = "";
  #alphabet: Alphabet = "ipa";
  #lexeme: Lexeme | undefined;
  #text = "";

  constructor(limits: PlsLimits) {
    this.#limits = limits;
  }

  open(tag: SaxesTagNS, line: number): void {
    if (this.#open.length === 0) this.#openRoot(tag, line);
    else if (this.#open.length >= deepest) {
      throw new Unreadable({ line, message: `Elements stand at most ${deepest} deep in each other.` });
    } else if (isOfPls(tag)) this.#openElement(tag.local, line);
    this.#open.push(tag);
    this.#text = "";
  }

  text(text: string): void {
    this.#text += text;
  }

  close(line: number): void {
    const tag = this.#open.pop();
    const parent = this.#open.at(-1);
    if (!tag || !isOfPls(tag)) return;
    const isPart = this.#lexeme && parent?.local === "lexeme";
    if (isPart && tag.local === "grapheme") this.#lexeme?.graphemes.push({ text: this.#text.trim(), line });
    if (isPart && tag.local === "phoneme") {
      this.#lexeme?.phonemes.push({
        text: this.#text.trim(),
        line,
        alphabet: attribute(tag, "alphabet") ?? this.#alphabet,
        isPreferred: attribute(tag, "prefer") === "true",
      });
    }
    if (tag.local === "lexeme" && this.#lexeme) {
      this.#take(this.#lexeme);
      this.#lexeme = undefined;
    }
  }

  reading(): PlsReading {
    if (this.problemCount > 0) return { problems: this.problems, count: this.problemCount };
    const words = [...this.#words.values()].map(({ word, phonemes }) => ({ word, phonemes }));
    return { lexicon: { language: this.#language, words } };
  }

  #openRoot(tag: SaxesTagNS, line: number): void {
    const wrong = (message: string) => new Unreadable({ line, message });
    if (!isOfPls(tag) || tag.local !== "lexicon") {
      throw wrong(`The file must begin with <lexicon version="1.0" xmlns="${plsNamespace}" …>.`);
    }
    if (attribute(tag, "version") !== "1.0") throw wrong('The lexicon must say version="1.0".');
    const alphabet = attribute(tag, "alphabet");
    if (!isAlphabet(alphabet)) throw wrong(`The lexicon's alphabet must be ${alphabets.join(" or ")}.`);
    this.#alphabet = alphabet;
    const [code = ""] = (attribute(tag, "xml:lang") ?? "").toLowerCase().split("-", 1);
    const language = languageOf(code);
    if (language === undefined) {
      throw wrong(`xml:lang must name a language that a voice speaks, as en or en-US.`);
    }
    this.#language = language;
  }

  #openElement(name: string, line: number): void {
    const parent = this.#open.at(-1)?.local ?? "";
    if (name === "lexeme" && parent === "lexicon") {
      this.#lexeme = { line, graphemes: [], phonemes: [] };
      return;
    }
    const children: Readonly<Record<string, readonly string[]>> = {
      lexicon: ["meta", "metadata"],
      lexeme: ["grapheme", "phoneme", "alias", "example"],
    };
    if (children[parent]?.includes(name) || this.#open.some(({ local }) => local === "metadata")) return;
    this.#tell(line, `<${name.slice(0, 40)}> has no place in <${parent.slice(0, 40)}>.`);
  }

  #take({ line, graphemes, phonemes }: Lexeme): void {
    if (graphemes.length === 0) this.#tell(line, "A lexeme needs a grapheme.");
    const sounds = phonemes.find(({ isPreferred }) => isPreferred) ?? phonemes[0];
    if (!sounds) {
      this.#tell(line, "A lexeme needs a phoneme; an alias cannot be taken in.");
      return;
    }
    const reading = readSounds(sounds.text, sounds.alphabet);
    if ("problem" in reading) {
      this.#tell(sounds.line, `The phoneme ${quoted(sounds.text)}: ${reading.problem}.`);
      return;
    }
    for (const grapheme of graphemes) this.#add(grapheme, reading.phonemes);
  }

  #add({ text, line }: Piece, phonemes: string): void {
    const word = lexiconWord(text);
    if (word === undefined) {
      const rule = "a word is 1 to 60 letters, with hyphens and apostrophes between";
      this.#tell(line, `The grapheme ${quoted(text)}: ${rule}.`);
      return;
    }
    const before = this.#words.get(word);
    if (before && before.phonemes !== phonemes) {
      this.#tell(line, `${quoted(text)} stands in line ${before.line} already, with other sounds.`);
      return;
    }
    this.#words.set(word, before ?? { word, phonemes, line });
    if (this.#words.size > this.#limits.words) {
      throw new Unreadable({ line, message: `A lexicon has ${this.#limits.words} words at most.` });
    }
  }

  #tell(line: number, message: string): void {
    this.problemCount++;
    if (this.problems.length < keptProblems) this.problems.push({ line, message });
  }
}

function isOfPls({ uri }: SaxesTagNS): boolean {
  return uri === plsNamespace;
}

function attribute({ attributes }: SaxesTagNS, name: string): string | undefined {
  return Object.hasOwn(attributes, name) ? attributes[name]?.value : undefined;
}

function readSounds(text: string, alphabet: string) {
  if (text.length > longestPhonemes) {
    return { problem: `it has ${text.length} characters, and may have ${longestPhonemes}` };
  }
  if (alphabet === "ipa") return readIpa(text);
  if (!isAlphabet(alphabet)) return { problem: `its alphabet must be ${alphabets.join(" or ")}` };
  const reading = readPhonemes(text);
  return "phonemes" in reading ? { phonemes: text } : { problem: reading.problem };
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}
