import { expect, test } from "vitest";
import { Failure } from "../../../server/contract/errors.ts";
import { checkLongMarkup } from "../../../server/text/markup.ts";
import { planSpeech, type SpeechPlanOptions } from "../../../server/text/planning/plan.ts";
import { heldRules } from "../../integration/contract/held-rules.ts";

const held = heldRules(import.meta.filename);
const plain: SpeechPlanOptions = {
  language: "eng",
  normalize: true,
  pauses: false,
  phonemes: false,
  inlineStretch: [],
  quickStart: false,
};

/**
 * Plans a text. A phrase is returned as `word word~pause`, a silence as `<ms>`, and a yield point as `rest`.
 */
function plan(text: string, options: Partial<SpeechPlanOptions> = {}): string[] {
  return [...planSpeech(text, { ...plain, ...options })].map((segment) => {
    if (segment.kind === "rest") return "rest";
    return segment.kind === "silence"
      ? `<${segment.durationMs}>`
      : `${segment.tokens.map(({ before, text, after }) => `${before}${text}${after}`).join(" ")}~${segment.pauseMs}`;
  });
}

test.each([
  ["One. Two.", ["One.~350", "Two.~0"]],
  ["Meet Dr. Smith now.", ["Meet doctor Smith now.~0"]],
  ["It is 3.5 km. Go.", ["It is three point five kilometers.~350", "Go.~0"]],
  ["J. Smith and I. We go.", ["J. Smith and I.~350", "We go.~0"]],
  ["He saw the U.S. Army. Ok.", ["He saw the U S Army.~350", "Ok.~0"]],
  ["Milk, tea etc. are here. Yes.", ["Milk,~130", "tea et cetera are here.~350", "Yes.~0"]],
  ["“Really?” he said.", ["“Really?”~130", "he said.~0"]],
  ["First line\n\nSecond", ["First line~600", "Second~0"]],
  ["wrapped\nline", ["wrapped line~0"]],
  ["你好。再见。", ["你好。~350", "再见。~0"]],
  ["क्या। हाँ।", ["क्या।~350", "हाँ।~0"]],
  ["", []],
  ["… — !", []],
])("planSpeech divides %j into %j", (text, phrases) => {
  expect(plan(text)).toEqual(phrases);
});

/** Each text has two sentences. The first sentence contains titles, numbers and abbreviations with dots. */
test.each([
  ["eng", "Mr. and Mrs. Smith met Prof. J. Hill at 3.5 km, i.e. there. Then they went."],
  ["spa", "El Dr. García y la Sra. López vieron al Prof. Ruiz a 3.5 km, pág. 7. Luego salieron."],
  ["fra", "M. Dupont et le Dr. Roux ont couru 3,5 km, p. ex. hier. Puis ils dorment."],
  ["deu", "Dr. Müller und Prof. Klein liefen z. B. 3,5 km am 3. Mai. Dann schliefen sie."],
  ["ita", "Il Dott. Rossi e la Sig.ra Verdi corsero 3,5 km, pag. 7. Poi dormirono."],
  ["por", "O Dr. Silva e a Sra. Souza correram 3,5 km, pág. 7. Depois dormiram."],
  ["nld", "Dhr. Jansen en drs. Bakker liepen 3,5 km, bijv. gisteren. Toen sliepen zij."],
  ["pol", "Prof. Nowak z ul. Długiej przebiegł 3,5 km. Potem spał."],
  ["rus", "Проф. Иванов из г. Москва на ул. Ленина прошёл 3,5 км. Потом он спал."],
  ["hin", "डॉ. शर्मा और प्रो. वर्मा 3.5 किलोमीटर दौड़े। फिर वे सो गए।"],
  ["ara", "ركض د. أحمد مسافة 3.5 كيلومتر. ثم نام."],
  ["tur", "Prof. Dr. Yılmaz 3,5 km koştu. Sonra uyudu."],
  ["swe", "Dr. Berg och prof. Lind sprang 3,5 km, s. 7. Sedan sov de."],
  ["ell", "Ο κ. Παπάς και ο Δρ. Νίκου έτρεξαν 3,5 χιλιόμετρα. Μετά κοιμήθηκαν."],
])("planSpeech in %s does not end a sentence at a dot of an abbreviation or number", (language, text) => {
  const pauses = [...planSpeech(text, { ...plain, language })].map((segment) =>
    segment.kind === "phrase" ? segment.pauseMs : -1,
  );
  expect(pauses.filter((ms) => ms >= 350)).toHaveLength(1);
  const raw = [...planSpeech(text, { ...plain, language, normalize: false })];
  expect(raw.filter((segment) => segment.kind === "phrase" && segment.pauseMs >= 350)).toHaveLength(1);
});

test("planSpeech does not end a sentence at a German ordinal", () => {
  expect(plan("Am 3. Oktober. Gut.", { language: "deu" })).toEqual(["Am dritten Oktober.~350", "Gut.~0"]);
});

test("planSpeech without normalization does not expand abbreviations, and does not end sentences at them", () => {
  expect(plan("Meet Dr. Smith.", { normalize: false })).toEqual(["Meet Dr. Smith.~0"]);
  expect(plan("$5 at 3 pm spell(AB)", { normalize: false })).toEqual(["$5 at 3 pm spell(AB)~0"]);
});

test("planSpeech ends the first phrase at its first comma, and later phrases at the end of the sentence", () => {
  expect(plan("Well, this is, as I said, long. And this, too.")).toEqual([
    "Well,~130",
    "this is, as I said, long.~350",
    "And this, too.~0",
  ]);
  held.exercised("first phrase first");
});

test("planSpeech with a quick start splits a long first sentence at a syntactic break, but no short one", () => {
  const long = "The old man gave us a very long story about the sea and everything that lives in it.";
  expect(plan(long, { quickStart: true })).toEqual([
    "The old man gave us a very long story~0",
    "about the sea and everything that lives in it.~0",
  ]);
  expect(plan(long)[0]).toBe("The old man gave us a very long story about the sea~0");
  expect(plan("They came home late in the evening.", { quickStart: true })).toHaveLength(1);
});

test("planSpeech does not split a first sentence that is only slightly longer than a first phrase", () => {
  const words = (count: number) => `${"word ".repeat(count - 1)}end.`;
  const lengths = (text: string, more: Partial<SpeechPlanOptions> = {}) =>
    [...planSpeech(text, { ...plain, ...more })].map((part) =>
      part.kind === "phrase" ? part.tokens.length : 0,
    );
  expect(lengths(words(16))).toEqual([16]);
  expect(lengths(words(16).replace(".", ""))).toEqual([16]);
  expect(lengths(words(17))).toEqual([12, 5]);
  expect(lengths(words(16), { quickStart: true })).toEqual([10, 6]);
});

test("planSpeech splits a long sentence without commas into phrases of limited length", () => {
  const phrases = [...planSpeech(`${"word ".repeat(200)}.`, plain)];
  const lengths = phrases.map((phrase) => (phrase.kind === "phrase" ? phrase.tokens.length : 0));
  expect(Math.max(...lengths)).toBeLessThanOrEqual(28);
  expect(lengths[0]).toBe(12);
  expect(lengths.reduce((sum, length) => sum + length)).toBe(200);
});

test("planSpeech replaces the pause of the punctuation by the exact pause in angle brackets", () => {
  expect(plan("One. <500> Two <0> three<20><30>", { pauses: true })).toEqual([
    "One.~0",
    "<500>",
    "Two~0",
    "three~0",
    "<20>",
    "<30>",
  ]);
});

test("planSpeech reads disabled markup as ordinary text", () => {
  expect(plan("<500> {k1Ast0xm} [slow]", { normalize: false })).toEqual(["<500> {k1Ast0xm} [slow]~0"]);
});

test("planSpeech assigns the inline stretches to the words in square brackets in order", () => {
  const [segment] = planSpeech("[a] b [c d]", { ...plain, inlineStretch: [2, 0.5] });
  expect(segment).toMatchObject({
    tokens: [
      { text: "a", stretch: 2 },
      { text: "b", stretch: 1 },
      { text: "c", stretch: 0.5 },
      { text: "d", stretch: 0.5 },
    ],
  });
});

test.each([
  ["[a] b", [2, 3], "/inlineSpeedAlpha", "2 values, and the text has 1 words"],
  ["[a] [b]", [2], "/inlineSpeedAlpha", "1 values, and the text has 2 words"],
])("planSpeech refuses %j with the stretches %j", (text, inlineStretch, pointer, detail) => {
  expect(failure(() => planSpeech(text, { ...plain, inlineStretch }))).toMatchObject({
    code: "invalid_request",
    fields: [{ pointer, detail: expect.stringContaining(detail) }],
  });
});

test.each([
  ["a {k1Ast0xm", undefined],
  ["a {k1Ast0xm}", undefined],
  ["a {k1stxm}", "character 3"],
  ["a {k9}", "position 2"],
  ["a {}", "empty"],
  ["a {kx1}", "stress digit"],
])("planSpeech refuses the phonemes of %j with %j", (text, detail) => {
  const run = () => planSpeech(text, { ...plain, phonemes: true });
  if (detail === undefined) expect([...run()]).toHaveLength(1);
  else expect(failure(run).message).toContain(detail);
});

test("checkLongMarkup refuses a word of more than 200 phonemes, and the message has its position", async () => {
  const options = { ...plain, phonemes: true };
  expect([...planSpeech(`a {${"s".repeat(200)}}`, options)]).toHaveLength(1);
  for (const count of [201, 1_000_000]) {
    const check = async () => {
      const text = `a {${"s".repeat(count)}}`;
      await checkLongMarkup(text, options, async () => undefined);
      planSpeech(text, options);
    };
    await expect(check).rejects.toThrow(
      "The phoneme string in braces at character 3 is longer than 200 characters. Write each word in separate braces.",
    );
  }
});

test.each(["😀! ", "😀. ", "(😀) "])(
  "planSpeech keeps at most 100 characters of punctuation from 100,000 repetitions of %j",
  (unit) => {
    const segments = [...planSpeech(`one ${unit.repeat(100_000)}two`, plain)];
    const tokens = segments.flatMap((segment) => (segment.kind === "phrase" ? segment.tokens : []));
    expect(Math.max(...tokens.map(({ after }) => after.length))).toBeLessThanOrEqual(100);
  },
);

test("planSpeech refuses a pause of more than a minute, and the message has the position but no text", () => {
  const { message } = failure(() => planSpeech("secret 😀 <60001>", { ...plain, pauses: true }));
  expect(message).toContain("character 10 ");
  expect(message).not.toContain("secret");
});

test("planSpeech refuses pauses of more than ten minutes in total", () => {
  const pauses = (count: number) => () =>
    planSpeech(`secret ${"<60000>".repeat(count)}`, { ...plain, pauses: true });
  expect([...pauses(10)()]).not.toEqual([]);
  const { message } = failure(pauses(11));
  expect(message).toBe(
    "The pauses of the text have a sum of 660000 ms; at most 600000 ms are allowed. Write shorter or fewer pauses.",
  );
});

test("planSpeech numbers written words, and gives all pieces of a long word the same index", () => {
  const [segment] = planSpeech(`one ${"a".repeat(130)} two`, plain);
  const tokens = segment?.kind === "phrase" ? segment.tokens : [];
  expect(tokens.map(({ word }) => word)).toEqual([0, 1, 1, 1, 2]);
});

function failure(run: () => unknown): Failure {
  try {
    run();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("the function did not throw a Failure");
}

test.each([". ", "😀 ", "😀", "?!", "\u200b", " "])(
  "planSpeech returns yield points for a long text of %j, which has no words",
  (unit) => {
    const text = unit.repeat(Math.floor(400_000 / unit.length));
    const segments = plan(`one ${text} two`);
    const rests = segments.filter((segment) => segment === "rest");
    expect(rests.length).toBeGreaterThanOrEqual(20);
    expect(segments.length - rests.length).toBeLessThanOrEqual(2);
    expect(segments.at(-1)).toMatch(/two~0$/);
  },
);

test.each(["<0>", "{k1Ast0xm} "])(
  "checkLongMarkup and planSpeech process a million characters of %j in small steps",
  async (unit) => {
    const options = { ...plain, pauses: true, phonemes: true };
    const count = Math.floor(1_000_000 / unit.length);
    const text = unit.repeat(count);
    let rests = 0;
    await checkLongMarkup(text, options, async () => {
      rests++;
    });
    expect(rests).toBeGreaterThanOrEqual(Math.floor(count / 500));
    const steps = [...planSpeech(text, options)].length;
    expect(steps).toBeGreaterThanOrEqual(count / 250);
  },
);

test("checkLongMarkup refuses an invalid pause at the end of a long text, and the message has its position", async () => {
  const text = `${"a <0> ".repeat(100_000)}<60001>`;
  const checked = checkLongMarkup(text, { ...plain, pauses: true }, async () => undefined);
  await expect(checked).rejects.toThrow("The pause at character 600001 is longer than 60000 ms");
});

test("planSpeech places no yield point inside a phrase or a number", () => {
  const sentence = "It is 5 km to the old town, and it is late. ";
  const segments = plan(sentence.repeat(2000));
  const phrases = segments.filter((segment) => segment !== "rest");
  expect(segments.length - phrases.length).toBeGreaterThan(5);
  const [, phrase] = plan(`Well. ${sentence} Well.`);
  expect(new Set(phrases.slice(2, -1))).toEqual(new Set([phrase]));
});

test.each(["?!", "a", "a.", "$", "\u0301", "\u200b", "日本"])(
  "planSpeech processes 16 million characters of %j without an overflow",
  (unit) => {
    const segments = planSpeech(unit.repeat(16_000_000 / unit.length), plain)[Symbol.iterator]();
    for (let i = 0; i < 50; i++) segments.next();
  },
);
