import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { validateXML } from "xmllint-wasm";
import { englishTexts } from "../../../server/dashboard/languages/english.ts";
import { alphabets } from "../../../server/text/pls/alphabets.ts";
import { type PlsReading, readPls } from "../../../server/text/pls/read.ts";
import { type LexiconEntryToWrite, writePls } from "../../../server/text/pls/write.ts";

const schema = readFileSync(join(import.meta.dirname, "../../support/pls.rng"), "utf8");
const limits = { words: 5_000 };
/**
 * Words with all symbols of the alphabet, adjacent symbols that form one sound, and stress at all positions.
 */
const words: readonly LexiconEntryToWrite[] = [
  { word: "custom", phonemes: "k1Ast0xm" },
  { word: "vowels", phonemes: "1@b0ad2AC1WD1xf1Yg0Eh1RJ0ek1Il0im1on0OG1Up1ur0N" },
  { word: "cat-show", phonemes: "k1@tS0odZ0I" },
  { word: "schwa", phonemes: "b0x0Us" },
  { word: "strengths", phonemes: "str1EGTsv1@wyz0x" },
  { word: "o'hara-łódź", phonemes: "0oh1@r0xC" },
];

function read(text: string, most = limits): PlsReading {
  return readPls(Buffer.from(text), most);
}

function lexicon(lexemes: string, more = 'alphabet="ipa" xml:lang="en-US"'): string {
  return `<?xml version="1.0" encoding="UTF-8"?>
<lexicon version="1.0" xmlns="http://www.w3.org/2005/01/pronunciation-lexicon" ${more}>
${lexemes}
</lexicon>`;
}

function entry(grapheme: string, phoneme: string): string {
  return `<lexeme><grapheme>${grapheme}</grapheme><phoneme>${phoneme}</phoneme></lexeme>`;
}

function problemsOf(reading: PlsReading): string[] {
  return "problems" in reading
    ? reading.problems.map(({ line, fault }) => `${line}: ${englishTexts.files.problem(fault)}`)
    : [];
}

describe("an exported lexicon file", () => {
  it.each(alphabets)("in %s conforms to the schema of the W3C, and is imported unchanged", async (name) => {
    const text = writePls(words, "en", name);
    const validation = await validateXML({ xml: text, schema, extension: "relaxng" });
    expect(validation.errors).toEqual([]);
    expect(read(text)).toEqual({ lexicon: { language: "eng", words } });
  });

  it("in IPA has the stress mark before the syllable", () => {
    const text = writePls([{ word: "custom", phonemes: "k1Ast0xm" }], "en", "ipa");
    expect(text).toContain("<phoneme>ˈkʌstəm</phoneme>");
    expect(writePls([{ word: "about", phonemes: "0xb1Wt" }], "en", "ipa")).toContain(">əˈbaʊt<");
  });

  it("with an invalid element is refused by the validator of this test", async () => {
    const text = writePls(words, "en", "ipa").replaceAll("grapheme>", "graph>");
    expect((await validateXML({ xml: text, schema, extension: "relaxng" })).valid).toBe(false);
  });
});

describe("a lexicon file of another program", () => {
  it("is read if it has alternatives, long vowels, ties, examples and metadata", () => {
    const text =
      lexicon(`<meta name="author" content="x"/><metadata><r:RDF xmlns:r="urn:x"><r:a/></r:RDF></metadata>
<!-- one --><lexeme role="noun" xml:id="a"><grapheme>Colour</grapheme><grapheme>color</grapheme>
<phoneme>x?</phoneme><phoneme prefer="true">/ˈkʌl.ɚ/</phoneme><example>My colour.</example></lexeme>
<lexeme><grapheme>church</grapheme><phoneme><![CDATA[ˈt͡ʃɜːt͡ʃ]]></phoneme></lexeme>
<lexeme><grapheme>app</grapheme><phoneme alphabet="x-svc-tts">1@p</phoneme></lexeme>`);
    expect(read(text)).toEqual({
      lexicon: {
        language: "eng",
        words: [
          { word: "colour", phonemes: "k1Al0R" },
          { word: "color", phonemes: "k1Al0R" },
          { word: "church", phonemes: "C1RC" },
          { word: "app", phonemes: "1@p" },
        ],
      },
    });
  });

  it("is refused with every invalid entry and its line", () => {
    const text = lexicon(
      [
        entry("good", "ɡʊd"),
        entry("two words", "tu"),
        entry("Bach", "bax"),
        "<lexeme><grapheme>NATO</grapheme><alias>n a t o</alias></lexeme>",
        entry("good", "ɡud"),
        entry("end", "ɛndˈ"),
        '<lexeme><grapheme>sampa</grapheme><phoneme alphabet="x-sampa">s</phoneme></lexeme>',
        "<lexeme><phoneme>s</phoneme></lexeme><word/>",
      ].join("\n"),
    );
    const reading = read(text);
    expect(problemsOf(reading)).toEqual([
      '4: The grapheme "two words": a word must have 1 to 60 letters; hyphens and apostrophes are allowed between letters.',
      '5: The phoneme "bax": the character x is not in the phonetic alphabet.',
      "6: A lexeme must have a phoneme; an alias is not supported.",
      '7: "good" is already in line 3, with another pronunciation.',
      '8: The phoneme "ɛndˈ": a stress mark must be followed by a syllable.',
      '9: The phoneme "s": its alphabet must be ipa or x-svc-tts.',
      "10: A lexeme must have a grapheme.",
      "10: <word> is not allowed in <lexicon>.",
    ]);
    expect(reading).toMatchObject({ count: 8 });
  });

  it.each([
    ["text that is not XML", "word = sounds", /^1: The XML is invalid near column \d+: /],
    ["truncated XML", lexicon("").slice(0, -5), /The XML is invalid/],
    [
      "another root element",
      "<lexicon version='1.0'/>",
      /^1: The file must begin with <lexicon version="1.0" xmlns=/,
    ],
    [
      "another alphabet",
      lexicon("", 'alphabet="x-sampa" xml:lang="en"'),
      /alphabet must be ipa or x-svc-tts/,
    ],
    ["no xml:lang", lexicon("", 'alphabet="ipa"'), /xml:lang must be the language of a voice/],
    [
      "another encoding",
      lexicon("").replace("UTF-8", "UTF-16"),
      /must be UTF-8, but declares the encoding "UTF-16"/,
    ],
    ["too many words", lexicon(entry("a", "ə") + entry("b", "bi")), /must have at most 1 words/],
    ["deeply nested elements", lexicon("<metadata>".repeat(200_000)), /at most 16 levels deep/],
    [
      "nested entities",
      lexicon(entry("lol", "&lol2;")).replace(
        "<lexicon",
        '<!DOCTYPE lexicon [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;">]>\n<lexicon',
      ),
      /^2: Document types .* are not supported/,
    ],
    [
      "an entity that refers to a file",
      lexicon(entry("passwd", "&file;")).replace(
        "<lexicon",
        '<!DOCTYPE lexicon [<!ENTITY file SYSTEM "file:///etc/passwd">]>\n<lexicon',
      ),
      /^2: Document types .* are not supported/,
    ],
    [
      "an entity without a declaration",
      lexicon(entry("passwd", "&file;")),
      /^3: The XML is invalid .*entity/,
    ],
  ])("is refused if it has %s", (name, text, problem) => {
    expect(problemsOf(read(text, { words: name === "too many words" ? 1 : 5_000 }))).toEqual([
      expect.stringMatching(problem),
    ]);
  });

  it("is refused if it is not UTF-8", () => {
    const text = lexicon(entry("é", "e"));
    expect(problemsOf(readPls(Buffer.from(text, "latin1"), limits))).toEqual([
      "1: The file is not valid UTF-8; save it as UTF-8.",
    ]);
  });

  it("is refused with the first 20 errors and the number of all errors", () => {
    const reading = read(lexicon(entry("1", "e").repeat(1_000)));
    expect(reading).toMatchObject({ count: 1_000 });
    expect(problemsOf(reading)).toHaveLength(20);
  });
});
