import { SaxesParser, type SaxesTagNS } from "saxes";
import { languageOf } from "../../../config/contract/voices.ts";
import { readIpa } from "../../contract/text/ipa.ts";
import { lexiconWord } from "../../contract/text/lexicon.ts";
import { longestPhonemes, readPhonemes } from "../../contract/text/phonemes.ts";
import { type Alphabet, alphabets, isAlphabet, plsNamespace } from "./alphabets.ts";
import type { PlsFault, PlsProblem, SoundsFault } from "./faults.ts";
import type { LexiconEntryToWrite } from "./write.ts";

export interface PlsLexicon {
  /** The ISO 639-3 code of the language. */
  readonly language: string;
  readonly words: readonly LexiconEntryToWrite[];
}

export type PlsReading =
  | { readonly lexicon: PlsLexicon }
  /** The first errors in the order of the file, and the number of all errors. */
  | { readonly problems: readonly PlsProblem[]; readonly count: number };

export interface PlsLimits {
  readonly words: number;
}

/** The highest nesting of elements. PLS has three levels, and metadata may have more. */
const maxDepth = 16;
const maxListedProblems = 20;

/**
 * Reads a lexicon file of PLS 1.0. The reader never opens files or entities that the document references, and
 * rejects document types.
 * @param file the content in UTF-8.
 */
export function readPls(file: Uint8Array, limits: PlsLimits): PlsReading {
  const document = new PlsDocument(limits);
  const parser = new SaxesParser({ xmlns: true });
  const here = (fault: PlsFault) => new Unreadable({ line: parser.line, fault });
  parser.on("error", ({ message }) => {
    const saying = message
      .replace(/^(\d+:)+ ?/, "")
      .replace(/\.$/, "")
      .slice(0, 100);
    throw here({ kind: "xml", column: parser.column, saying });
  });
  parser.on("xmldecl", ({ encoding }) => {
    if (encoding !== undefined && !/^utf-?8$/i.test(encoding)) {
      throw here({ kind: "encoding", encoding: JSON.stringify(encoding) });
    }
  });
  parser.on("doctype", () => {
    throw here({ kind: "doctype" });
  });
  parser.on("opentag", (tag) => document.open(tag, parser.line));
  parser.on("closetag", () => document.close(parser.line));
  parser.on("text", (text) => document.text(text));
  parser.on("cdata", (text) => document.text(text));
  try {
    parser.write(decode(file)).close();
    return document.reading();
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    const problems = [...document.problems, error.problem].slice(-maxListedProblems);
    return { problems, count: document.problemCount + 1 };
  }
}

/** An error after which the rest of the file cannot be read. */
class Unreadable extends Error {
  readonly problem: PlsProblem;

  constructor(problem: PlsProblem) {
    super(problem.fault.kind);
    this.problem = problem;
  }
}

function decode(file: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(file);
  } catch {
    throw new Unreadable({ line: 1, fault: { kind: "not-utf-8" } });
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

interface Placed extends LexiconEntryToWrite {
  readonly line: number;
}

/** Collects the entries and the errors of a document. */
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
    else if (this.#open.length >= maxDepth) {
      throw new Unreadable({ line, fault: { kind: "deep", most: maxDepth } });
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
      this.#addLexeme(this.#lexeme);
      this.#lexeme = undefined;
    }
  }

  reading(): PlsReading {
    if (this.problemCount > 0) return { problems: this.problems, count: this.problemCount };
    const words = [...this.#words.values()].map(({ word, phonemes }) => ({ word, phonemes }));
    return { lexicon: { language: this.#language, words } };
  }

  #openRoot(tag: SaxesTagNS, line: number): void {
    const unreadable = (fault: PlsFault) => new Unreadable({ line, fault });
    if (!isOfPls(tag) || tag.local !== "lexicon") {
      throw unreadable({ kind: "root", namespace: plsNamespace });
    }
    if (attribute(tag, "version") !== "1.0") throw unreadable({ kind: "version" });
    const alphabet = attribute(tag, "alphabet");
    if (!isAlphabet(alphabet)) throw unreadable({ kind: "alphabet", allowed: alphabets });
    this.#alphabet = alphabet;
    const [code = ""] = (attribute(tag, "xml:lang") ?? "").toLowerCase().split("-", 1);
    const language = languageOf(code);
    if (language === undefined) {
      throw unreadable({ kind: "language" });
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
    this.#report(line, { kind: "misplaced", element: name.slice(0, 40), parent: parent.slice(0, 40) });
  }

  #addLexeme({ line, graphemes, phonemes }: Lexeme): void {
    if (graphemes.length === 0) this.#report(line, { kind: "no-grapheme" });
    const sounds = phonemes.find(({ isPreferred }) => isPreferred) ?? phonemes[0];
    if (!sounds) {
      this.#report(line, { kind: "no-phoneme" });
      return;
    }
    const reading = readSounds(sounds.text, sounds.alphabet);
    if ("fault" in reading) {
      this.#report(sounds.line, { kind: "phoneme", text: quoted(sounds.text), why: reading.fault });
      return;
    }
    for (const grapheme of graphemes) this.#add(grapheme, reading.phonemes);
  }

  #add({ text, line }: Piece, phonemes: string): void {
    const word = lexiconWord(text);
    if (word === undefined) {
      this.#report(line, { kind: "grapheme", text: quoted(text) });
      return;
    }
    const existing = this.#words.get(word);
    if (existing && existing.phonemes !== phonemes) {
      this.#report(line, { kind: "twice", text: quoted(text), line: existing.line });
      return;
    }
    this.#words.set(word, existing ?? { word, phonemes, line });
    if (this.#words.size > this.#limits.words) {
      throw new Unreadable({ line, fault: { kind: "full", most: this.#limits.words } });
    }
  }

  #report(line: number, fault: PlsFault): void {
    this.problemCount++;
    if (this.problems.length < maxListedProblems) this.problems.push({ line, fault });
  }
}

function isOfPls({ uri }: SaxesTagNS): boolean {
  return uri === plsNamespace;
}

function attribute({ attributes }: SaxesTagNS, name: string): string | undefined {
  return Object.hasOwn(attributes, name) ? attributes[name]?.value : undefined;
}

function readSounds(
  text: string,
  alphabet: string,
): { readonly phonemes: string } | { readonly fault: SoundsFault } {
  if (text.length > longestPhonemes) {
    return { fault: { kind: "long", length: text.length, most: longestPhonemes } };
  }
  if (alphabet === "ipa") return readIpa(text);
  if (!isAlphabet(alphabet)) return { fault: { kind: "alphabet", allowed: alphabets } };
  const reading = readPhonemes(text);
  return "phonemes" in reading
    ? { phonemes: text }
    : { fault: { kind: "written", problem: reading.problem } };
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}
