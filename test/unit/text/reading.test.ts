import { expect, test } from "vitest";
import { escapeSsml, toSsml } from "../../../server/engine/espeak/ssml.ts";
import { toAscii } from "../../../server/text/ascii.ts";
import { readPhonemes, toArpabet, toEspeakMnemonics } from "../../../server/text/phonemes.ts";
import { planSpeech } from "../../../server/text/plan.ts";

test.each([
  ["plain", "plain"],
  ["naïve café", "naive cafe"],
  ["Straße", "Strasse"],
  ["Łódź", "Lodz"],
  ["Ægir", "Aegir"],
  ["€5", "euros 5"],
  ["it’s “so”", 'it\'s "so"'],
  ["Москва", "Moskva"],
  ["Ελλάδα", "Ellada"],
  ["ﬁne", "fine"],
  ["日本 😀 ok", "ok"],
  ["５", "5"],
])("%j is read as %j in ASCII", (written, read) => {
  expect(toAscii(written)).toBe(read);
});

test.each([
  ["k1Ast0xm", "k ah1 s t ax0 m", "k|'V|s|t|@|m"],
  ["w1Rld", "w er1 l d", "w|'3:|l|d"],
  ["g1orby0ul2Ets", "g ow1 r b y uw0 l eh1 t s", "g|'oU|r|b|j|u:|l|,E|t|s"],
  ["b1AtN", "b ah1 t ax0 n", "b|'V|t|@n"],
])("{%s} is %j for Flite and %j for eSpeak NG", (written, arpabet, mnemonics) => {
  const reading = readPhonemes(written);
  const phonemes = "phonemes" in reading ? reading.phonemes : [];
  expect(toArpabet(phonemes)).toBe(arpabet);
  expect(toEspeakMnemonics(phonemes)).toBe(mnemonics);
});

test("every symbol of the alphabet is read, and only those", () => {
  const alphabet = new Set("@aAWxYEReIioOUuNbCdDfghJklmnGprsStTvwyzZ");
  for (let code = 33; code < 127; code++) {
    const symbol = String.fromCharCode(code);
    expect("phonemes" in readPhonemes(symbol), symbol).toBe(alphabet.has(symbol));
  }
});

test("nothing that a user writes acts as markup of eSpeak NG", () => {
  const ssml = toSsml([
    {
      text: '<break time="9s"/>&amp;[[h@l\'oU]]\u0000\ud800',
      before: "]]",
      after: "</speak>",
      stretch: 2,
    },
  ]);
  const inside = ssml.replace(/^<speak><mark name="0"\/><prosody rate="50%">|<\/prosody><\/speak>$/g, "");
  expect(inside).not.toMatch(/[<>]|\[\[|\]\]/);
  expect(inside).toContain("&lt;break");
  expect(inside.isWellFormed()).toBe(true);
  expect(escapeSsml("[[[[a]]]]")).not.toMatch(/\[\[|\]\]/);
});

test("brackets around a word never join into eSpeak NG's own markup", () => {
  expect(toSsml([{ text: "[h@]", before: "[", after: "]", stretch: 1 }])).not.toMatch(/\[\[|\]\]/);
  const phonemes = [{ symbol: "a", stress: 1 as const }];
  const spoken = toSsml([{ text: "{1a}", before: "[(", after: ")]", stretch: 1, phonemes }]);
  expect(spoken).toBe(`<speak><mark name="0"/>([['A:]])</speak>`);
});

test("any Unicode goes through the text front end, with word indices in order", () => {
  const random = pseudoRandom(7);
  for (let round = 0; round < 3_000; round++) {
    const text = randomText(random);
    let lastWord = -1;
    for (const segment of planSpeech(text, {
      language: "eng",
      normalize: true,
      pauses: true,
      phonemes: false,
      inlineStretch: [],
    })) {
      if (segment.kind === "silence") continue;
      expect(segment.tokens.length).toBeGreaterThan(0);
      for (const token of segment.tokens) {
        expect(token.word).toBeGreaterThanOrEqual(lastWord);
        expect(token.text.isWellFormed()).toBe(true);
        expect(toAscii(token.text)).toMatch(/^[\x20-\x7e]*$/);
        expect([...token.text].length).toBeLessThanOrEqual(61);
        lastWord = token.word;
      }
      expect(toSsml(segment.tokens)).not.toMatch(/\[\[|\]\]/);
    }
  }
});

/** Text of all sorts: letters, controls, lone surrogates, emoji, right-to-left and combining marks. */
function randomText(random: () => number): string {
  const pools = [
    [0x20, 0x7e],
    [0x00, 0x1f],
    [0xd800, 0xdfff],
    [0x1f300, 0x1faff],
    [0x0590, 0x06ff],
    [0x0300, 0x036f],
    [0x3040, 0x30ff],
    [0x4e00, 0x9fff],
    [0x2000, 0x206f],
    [0xfe00, 0xffff],
    [0x0900, 0x0dff],
  ] as const;
  const length = Math.floor(random() * 60);
  return Array.from({ length }, () => {
    if (random() < 0.15) return " ";
    const [from, to] = pools[Math.floor(random() * pools.length)] ?? pools[0];
    return String.fromCodePoint(from + Math.floor(random() * (to - from + 1)));
  }).join("");
}

/** The same sequence in every run (mulberry32). */
function pseudoRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
