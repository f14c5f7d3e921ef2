import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunningTier } from "../../../server/model/tier.ts";
import { hear, modelTier } from "../../support/model-tier.ts";
import { recognize, type Spoken } from "../../support/recognizer.ts";
import { wavFile } from "../../support/wav.ts";

const sentences = [
  "The children played in the garden until the sun went down.",
  "She opened the window and looked at the river.",
  "My brother works in a small office near the station.",
  "We had bread and cheese for lunch on the train.",
  "The old man told us a story about the sea.",
  "Please close the door when you leave the house.",
  "They built a new school at the end of the street.",
  "He wrote a long letter to his friend in the city.",
  "The doctor said that I should drink more water.",
  "It was raining when we came home last night.",
  "The teacher asked the class to read the first page.",
  "I bought a blue coat because the winter is cold.",
  "Her father drives a truck for a large company.",
  "The dog ran across the field after the ball.",
  "You can see the mountains from the kitchen window.",
  "The meeting will start at nine in the morning.",
  "There were many people waiting in front of the bank.",
  "He put the book back on the table and left the room.",
  "The farmer has two horses and a hundred sheep.",
  "We will visit our family at the end of the month.",
];

let tier: RunningTier;
let folder: string;
beforeAll(async () => {
  tier = await modelTier();
  folder = await mkdtemp(join(tmpdir(), "svc-tts-recognition-"));
});
afterAll(async () => {
  await tier.stop();
  await rm(folder, { recursive: true });
});

/** Each sentence spoken into a file, as it is or changed. */
async function speakAll(speaker: string, change = (samples: Int16Array) => samples): Promise<Spoken[]> {
  const spoken: Spoken[] = [];
  for (const [index, sentence] of sentences.entries()) {
    const { samples, rate } = await hear(tier.url, { speaker, text: sentence });
    const wav = join(folder, `${speaker}-${index}.wav`);
    await writeFile(wav, wavFile(change(withSilence(samples, rate)), rate));
    spoken.push({ wav, sentence });
  }
  return spoken;
}

/** A recognizer needs a moment of room around the speech, as a microphone would give it. */
function withSilence(samples: Int16Array, rate: number): Int16Array {
  const padded = new Int16Array(samples.length + rate / 2);
  padded.set(samples, rate / 4);
  return padded;
}

test.each([
  ["alan", 0.15],
  ["susan", 0.15],
])("a recognizer understands %s", async (speaker, worst) => {
  const { wordErrorRate } = await recognize(await speakAll(speaker));
  expect(wordErrorRate).toBeLessThanOrEqual(worst);
});

test("the recognizer understands nothing of speech played backwards", async () => {
  const { wordErrorRate } = await recognize(await speakAll("alan", (samples) => samples.toReversed()));
  expect(wordErrorRate).toBeGreaterThanOrEqual(0.8);
});
