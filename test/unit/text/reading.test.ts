import { expect, test } from "vitest";
import { readPhonemes, toArpabet, toEspeakMnemonics } from "../../../server/contract/text/phonemes.ts";
import { escapeSsml, toSsml } from "../../../server/engine/espeak/ssml.ts";
import { toAscii } from "../../../server/text/ascii.ts";
import { planSpeech } from "../../../server/text/planning/plan.ts";
import { randomText } from "../../support/audio/texts.ts";
import { seededRandom } from "../../support/seed.ts";

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
])("toAscii converts %j to %j", (written, read) => {
  expect(toAscii(written)).toBe(read);
});

test.each([
  ["k1Ast0xm", "k ah1 s t ax0 m", "k|'V|s|t|@|m"],
  ["w1Rld", "w er1 l d", "w|'3:|l|d"],
  ["g1orby0ul2Ets", "g ow1 r b y uw0 l eh1 t s", "g|'oU|r|b|j|u:|l|,E|t|s"],
  ["b1AtN", "b ah1 t ax0 n", "b|'V|t|@n"],
])("the phonemes {%s} are %j for Flite and %j for eSpeak NG", (written, arpabet, mnemonics) => {
  const reading = readPhonemes(written);
  const phonemes = "phonemes" in reading ? reading.phonemes : [];
  expect(toArpabet(phonemes)).toBe(arpabet);
  expect(toEspeakMnemonics(phonemes)).toBe(mnemonics);
});

test("readPhonemes accepts exactly the symbols of the alphabet", () => {
  const alphabet = new Set("@aAWxYEReIioOUuNbCdDfghJklmnGprsStTvwyzZ");
  for (let code = 33; code < 127; code++) {
    const symbol = String.fromCharCode(code);
    expect("phonemes" in readPhonemes(symbol), symbol).toBe(alphabet.has(symbol));
  }
});

test("toSsml escapes user text, so that eSpeak NG reads no markup in it", () => {
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

test("toSsml writes brackets around a word so that they form no phoneme markup of eSpeak NG", () => {
  expect(toSsml([{ text: "[h@]", before: "[", after: "]", stretch: 1 }])).not.toMatch(/\[\[|\]\]/);
  const phonemes = [{ symbol: "a", stress: 1 as const }];
  const spoken = toSsml([{ text: "{1a}", before: "[(", after: ")]", stretch: 1, phonemes }]);
  expect(spoken).toBe(`<speak><mark name="0"/>([['A:]])</speak>`);
});

test("planSpeech, toAscii and toSsml accept any Unicode, with word indices in order", () => {
  const random = seededRandom("text front end").next;
  for (let round = 0; round < 1_000; round++) {
    const text = randomText(random);
    let lastWord = -1;
    for (const segment of planSpeech(text, {
      language: "eng",
      normalize: true,
      pauses: true,
      phonemes: false,
      inlineStretch: [],
      quickStart: false,
    })) {
      if (segment.kind !== "phrase") continue;
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
