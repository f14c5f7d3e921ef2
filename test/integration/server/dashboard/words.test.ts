import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { voices } from "../../../../config/contract/voices.ts";
import type { RunningTier } from "../../../../server/model/tier.ts";
import { openDatabase } from "../../../../server/store/database/database.ts";
import { createKey } from "../../../../server/store/keys/key.ts";
import { openKeyTableBook } from "../../../../server/store/keys/key-table.ts";
import { eventuallyOn, FakeClock } from "../../../support/fake-clock.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { modelTier } from "../../../support/server/model-tier.ts";
import { addSignedInUser, Visitor } from "../../../support/server/visitor.ts";

const password = "four plain words here";
const sounds = "z1Orbl2@ks";
const clock = new FakeClock();
const folder = folderOfTests("words");

let tier: RunningTier;
let api: TestApi;
let owner: Visitor;
const keys = { blue: createKey(), red: createKey() };

beforeAll(async () => {
  const database = join(folder, "svc-tts.db");
  writeFileSync(join(folder, "setup"), "the-setup-token");
  const opened = openDatabase(database);
  const book = openKeyTableBook(opened, () => clock.nowMs());
  for (const team of ["blue", "red"] as const) {
    await book.create(keys[team], { name: team, team, scopes: ["tts:write"] });
  }
  await opened.close();
  const dashboard = { url: "http://127.0.0.1", setupFile: join(folder, "setup") };
  tier = await modelTier({ tokens: { kind: "fixed", tokens: ["internal-token"] } });
  api = await startTestApi(tier.url, { voices, database, dashboard }, { clock });
  owner = new Visitor(api.url);
  await owner.post("/dashboard/setup", { token: "the-setup-token", name: "ada", password });
});
afterAll(async () => {
  await api.stop();
  await tier.stop();
});

async function speak(team: keyof typeof keys, text: string, more: object = {}): Promise<Buffer> {
  const body = { modelId: "mist", speaker: "susan", text, ...more };
  const answer = await api.post(body, { authorization: `Bearer ${keys[team]}`, accept: "audio/pcm" });
  expect(answer.status).toBe(200);
  return Buffer.from(await answer.arrayBuffer());
}

describe("an out-of-vocabulary word", () => {
  const page = () => owner.get("/dashboard/words?team=blue");

  it("is listed for review, and after its phonemes are saved, they apply to the requests of that team only", async () => {
    const plain = await speak("blue", "zorblax");
    const expected = await speak("blue", `{${sounds}}`, { phonemizeBetweenBrackets: true });
    expect(plain.equals(expected)).toBe(false);
    await speak("blue", "Zorblax and quuxly.", { saveOovs: true });
    await eventuallyOn(clock, "the word on the page", async () =>
      (await page()).text.includes(">Zorblax</h2>"),
    );
    expect((await owner.get("/dashboard/words?team=red")).text).not.toContain("Zorblax");
    const form = { team: "blue", word: "Zorblax", language: "eng" };
    const wrong = await owner.post("/dashboard/words/save", { ...form, phonemes: "z1?" });
    expect(wrong.status).toBe(400);
    expect(wrong.text).toContain("a stress digit must be followed by a vowel");
    await owner.post("/dashboard/words/save", { ...form, phonemes: `{${sounds}}` });
    expect((await page()).text).not.toContain(">Zorblax</h2>");
    expect((await page()).text).toContain(`value="${sounds}"`);
    expect((await speak("blue", "zorblax")).equals(expected)).toBe(true);
    expect((await speak("red", "zorblax")).equals(plain)).toBe(true);
    await owner.post("/dashboard/words/remove", form);
    expect((await speak("blue", "zorblax")).equals(plain)).toBe(true);
  });

  it("is not listed again after it was dismissed", async () => {
    await speak("blue", "Blorquent.", { saveOovs: true });
    await eventuallyOn(clock, "the word on the page", async () =>
      (await page()).text.includes(">Blorquent</h2>"),
    );
    await owner.post("/dashboard/words/dismiss", { team: "blue", word: "Blorquent", language: "eng" });
    await speak("blue", "blorquent and wuggish.", { saveOovs: true });
    await eventuallyOn(clock, "the other word on the page", async () =>
      (await page()).text.includes(">wuggish</h2>"),
    );
    expect((await page()).text).not.toMatch(/>blorquent<\/h2>/i);
  });

  it("is listed with its sentence for a team that stores sentences, and sentences are deleted when the team disables this", async () => {
    const turn = (keep: string, by = owner) => by.post("/dashboard/words/sentences", { team: "blue", keep });
    const spoken = "First of all. That glumfrag is <new> here. Last.";
    const quoted = '<blockquote dir="auto" lang="en">That glumfrag is &#60;new&#62; here.</blockquote>';
    await speak("blue", spoken, { saveOovs: true });
    await eventuallyOn(clock, "the word on the page", async () =>
      (await page()).text.includes(">glumfrag</h2>"),
    );
    expect((await page()).text).not.toContain("<blockquote");
    const member = await addSignedInUser(owner, api.url, {
      name: "bob",
      role: "member",
      team: "blue",
      password,
    });
    expect((await member.get("/dashboard/words")).text).not.toContain("Save sentences");
    expect((await turn("yes", member)).status).toBe(403);
    await page();
    expect((await turn("yes")).headers.get("location")).toBe("/dashboard/words?team=blue");
    await speak("blue", spoken, { saveOovs: true });
    await speak("red", spoken, { saveOovs: true });
    await eventuallyOn(clock, "the sentence on the page", async () => (await page()).text.includes(quoted));
    expect((await member.get("/dashboard/words")).text).toContain(quoted);
    expect((await owner.get("/dashboard/words?team=red")).text).not.toContain("<blockquote");
    await page();
    await turn("no");
    expect((await page()).text).not.toContain("<blockquote");
    await turn("yes");
    expect((await page()).text).not.toContain("<blockquote"); // The word was deleted, not only hidden.
    expect((await owner.get("/dashboard/changes")).text).toMatch(
      /<td>ada<\/td><td>sentences turned off<\/td><td>blue<\/td>/,
    );
  });

  it("cannot be saved if it contains markup, a formula, white space or digits", async () => {
    await page();
    for (const word of ["<b>x</b>", "=cmd", "two words", "1st"]) {
      const form = { team: "blue", word, language: "eng", phonemes: sounds };
      expect((await owner.post("/dashboard/words/save", form)).status).toBe(400);
    }
    const nowhere = { team: "blue", word: "word", language: "xxx", phonemes: sounds };
    expect((await owner.post("/dashboard/words/save", nowhere)).status).toBe(400);
  });
});
