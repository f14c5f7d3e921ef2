import { afterAll, beforeAll, expect, test } from "vitest";
import { languages, voices } from "../../../../config/contract/voices.ts";
import { choose } from "../../../support/audio/recognizer.ts";
import { randomText } from "../../../support/audio/texts.ts";
import { timbresOf } from "../../../support/audio/timbre.ts";
import { pseudoRandom } from "../../../support/seed.ts";
import {
  type SpeakingServer,
  startSpeakingServer,
  type TimedAnswer,
} from "../../../support/server/whole-server.ts";

let server: SpeakingServer;
beforeAll(async () => {
  server = await startSpeakingServer();
});
afterAll(() => server.stop());

const phonemeWords =
  `apple 1@pxl, water w1atR, garden g1ard0xn, window w1Ind0o, river r1Iv0R, office 1af0xs, station st1eS0xn, bread br1Ed,
  cheese C1iz, lunch l1AnC, doctor d1akt0R, teacher t1iC0R, winter w1Int0R, father f1aD0R, company k1Amp0xn0i, mountain m1Wnt0xn,
  kitchen k1IC0xn, meeting m1it0IG, people p1ip0xl, table t1eb0xl, hundred h1Andr0xd, family f1@m0xl0i, judge J1AJ, vision v1IZ0xn,
  thing T1IG, yellow y1El0o, boy b1O, house h1Ws, music my1uz0Ik, good g1Ud, shoe S1u, time t1Ym, zebra z1ibr0x, customer k1Ast0xm0R,
  button b1AtN`
    .split(",")
    .map((pair) => pair.trim().split(" "));

test("a recognizer understands words in phonemes, with every symbol of the alphabet", async () => {
  const symbols = new Set(phonemeWords.map(([, phonemes = ""]) => phonemes.replace(/\d/g, "")).join(""));
  expect([...symbols].sort().join("")).toBe([..."@aAWxYEReIioOUuNbCdDfghJklmnGprsStTvwyzZ"].sort().join(""));
  const spoken = await Promise.all(
    phonemeWords.map(async ([word = "", phonemes = ""]) => {
      const body = { speaker: "alan", text: `{${phonemes}}`, phonemizeBetweenBrackets: true };
      return { ...(await server.speak(body)), sentence: word };
    }),
  );
  const right = await choose(spoken);
  const wrong = phonemeWords.filter((_, i) => !right[i]).map(([word]) => word);
  expect(wrong.length, wrong.join(" ")).toBeLessThanOrEqual(phonemeWords.length - 30);
});

const spans = ({ words }: TimedAnswer) => words.map(({ start, end }) => end - start);

test.each([
  ["alan", "we really like the water here"],
  ["greta", "wir mögen das Wasser hier sehr"],
])(
  "%s changes the speed of each bracketed word, faster or slower, and not of other words",
  async (speaker, text) => {
    const [, second = "", , fourth = ""] = text.split(" ");
    const bracketed = text.replace(second, `[${second}]`).replace(fourth, `[${fourth}]`);
    const plain = spans(await server.speakTimed({ speaker, text }));
    const changed = spans(
      await server.speakTimed({ speaker, text: bracketed, inlineSpeedAlpha: "0.5, 2.5" }),
    );
    const ratio = (word: number) => (changed[word] ?? 0) / (plain[word] ?? 0);
    expect(ratio(1)).toBeLessThan(0.75);
    expect(ratio(3)).toBeGreaterThan(1.8);
    for (const other of [0, 2, 4]) expect(Math.abs(ratio(other) - 1)).toBeLessThan(0.35);
  },
);

test.each([
  ["alan", "mist"],
  ["robert", "mistv2"],
  ["greta", "mist"],
  ["luna", "arcana"],
])("%s (%s) changes its speed as requested, and keeps its pitch", async (speaker, modelId) => {
  const text =
    speaker === "greta" ? "Die Kinder spielten im Garten am Haus." : "The children played in the garden.";
  const speeds = [0.25, 0.7, 1, 1.5, 3];
  const answers = [];
  for (const speedAlpha of speeds)
    answers.push(await server.speak({ speaker, modelId, text, speedAlpha, temperature: 0 }));
  const plainLength = answers[2]?.samples.length ?? 0;
  for (const [i, { samples }] of answers.entries()) {
    const expected = modelId === "arcana" ? 1 / (speeds[i] ?? 1) : (speeds[i] ?? 1);
    expect(samples.length / plainLength / expected, `${speeds[i]}`).toBeGreaterThan(0.93);
    expect(samples.length / plainLength / expected, `${speeds[i]}`).toBeLessThan(1.07);
  }
  const pitches = (await timbresOf(answers.slice(1, 4))).map(({ pitchHz }) => pitchHz);
  for (const pitch of pitches) {
    expect(Math.abs(12 * Math.log2(pitch / (pitches[1] ?? 0)))).toBeLessThan(1.5);
  }
});

test("spell(…) reads letters one by one, and noTextNormalization changes the pronunciation of numbers", async () => {
  const seconds = async (body: object) => {
    const { samples, rate } = await server.speak({ speaker: "alan", ...body });
    return samples.length / rate;
  };
  expect(await seconds({ text: "spell(cab)" })).toBeGreaterThan(1.5 * (await seconds({ text: "cab" })));
  const written = await server.speakTimed({
    speaker: "alan",
    text: "On 3/4 of it.",
    noTextNormalization: true,
  });
  const read = await server.speakTimed({ speaker: "alan", text: "On 3/4 of it." });
  expect(written.words.map(({ word }) => word)).toEqual(read.words.map(({ word }) => word));
  expect(written.samples).not.toEqual(read.samples);
});

test("any Unicode text becomes speech or silence, in every language", async () => {
  const random = pseudoRandom(11);
  for (const language of Object.keys(languages)) {
    const voice = voices.find((one) => one.language === language);
    const texts = Array.from({ length: 4 }, () => randomText(random) || "\ud800");
    const answers = await Promise.all(
      texts.map((text) => server.speakTimed({ speaker: voice?.id, text, pauseBetweenBrackets: true })),
    );
    for (const { samples, words } of answers) {
      expect(samples.length).toBeGreaterThan(0);
      for (const { word } of words) expect(word.isWellFormed()).toBe(true);
    }
  }
});
