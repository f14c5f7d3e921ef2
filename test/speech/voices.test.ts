import { afterAll, beforeAll, expect, test } from "vitest";
import { type ModelId, modelIds } from "../../config/contract/models.ts";
import { type Voice, voices, voicesOf } from "../../config/contract/voices.ts";
import type { RunningTier } from "../../server/model/tier.ts";
import { longTexts } from "../support/audio/texts.ts";
import { distance, distinct, type Recording, type Timbre, timbresOf } from "../support/audio/timbre.ts";
import { hear, modelTier } from "../support/server/model-tier.ts";

/** Two recordings of each voice, by voice id: one for each text of the voice's language. */
const takes = new Map<string, readonly [Timbre, Timbre]>();
const tiers: RunningTier[] = [];

beforeAll(async () => {
  const mist = await modelTier();
  const arcana = await modelTier({ tier: "arcana" });
  tiers.push(mist, arcana);
  const recordings: Recording[] = [];
  for (const voice of voices) {
    const { url } = voice.models.includes("arcana") ? arcana : mist;
    const texts = longTexts[voice.language] ?? [];
    recordings.push(...(await Promise.all(texts.map((text) => speakPlainly(url, voice, text)))));
  }
  const timbres = await timbresOf(recordings);
  for (const [i, { id }] of voices.entries()) {
    const [first, second] = timbres.slice(2 * i);
    if (first && second) takes.set(id, [first, second]);
  }
}, 240_000);
afterAll(() => Promise.all(tiers.map((tier) => tier.stop())));

/** Synthesizes without random sampling: the random variation of arcana is not a property of the voice. */
function speakPlainly(url: string, { id, language, models }: Voice, text: string): Promise<Recording> {
  const sampling = { repetitionPenalty: 1, temperature: 0, topP: 1, maxTokens: 5000 };
  const modelId = models[0] ?? "mist";
  return hear(url, { modelId, speaker: id, lang: language, text, sampling });
}

function takesOf({ id }: Voice): readonly [Timbre, Timbre] {
  const found = takes.get(id);
  if (!found) throw new Error(`voice ${id} has no recordings`);
  return found;
}

function* pairsOf(model: ModelId): Generator<readonly [Voice, Voice]> {
  const all = voicesOf(model);
  for (const [i, one] of all.entries()) {
    for (const other of all.slice(i + 1)) if (one.language === other.language) yield [one, other];
  }
}

test.each(modelIds)("any two voices of %s in one language have distinct timbres", (model) => {
  const pairs = [...pairsOf(model)];
  expect(pairs.length).toBeGreaterThan(20);
  for (const [one, other] of pairs) {
    const [[a, b], [c, d]] = [takesOf(one), takesOf(other)];
    const nearest = Math.min(distance(a, c), distance(a, d), distance(b, c), distance(b, d));
    expect(nearest, `${one.id} and ${other.id}`).toBeGreaterThan(distinct);
  }
});

test("two recordings of the same voice have the same timbre", () => {
  for (const voice of voices) expect(distance(...takesOf(voice)), voice.id).toBeLessThan(distinct);
});

test("a female voice is higher than a male voice of the same language", () => {
  for (const [one, other] of pairsOf("mist")) {
    if (one.gender === other.gender) continue;
    const [she, he] = one.gender === "female" ? [one, other] : [other, one];
    expect(takesOf(she)[0].pitchHz, `${she.id} and ${he.id}`).toBeGreaterThan(takesOf(he)[0].pitchHz);
  }
});
