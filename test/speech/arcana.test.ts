/**
 * Tests the speech of arcana with its default options through the API tier, on sentences outside its training
 * data.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { recognize, type Spoken } from "../support/audio/recognizer.ts";
import { englishSentences } from "../support/audio/texts.ts";
import { type SpeakingServer, startSpeakingServer } from "../support/server/whole-server.ts";

let server: SpeakingServer;
let flite: SpeakingServer;
beforeAll(async () => {
  server = await startSpeakingServer();
  flite = await startSpeakingServer({ generator: "flite" });
});
afterAll(() => Promise.all([server.stop(), flite.stop()]));

async function errorRate({ speak }: SpeakingServer, speaker: string): Promise<number> {
  const spoken: Spoken[] = [];
  for (const sentence of englishSentences) {
    spoken.push({ ...(await speak({ speaker, modelId: "arcana", text: sentence })), sentence });
  }
  return (await recognize(spoken)).wordErrorRate;
}

test("a recognizer misses at most a quarter of the words of arcana, and for luna at most twice as many as for Flite", async () => {
  for (const speaker of ["luna", "sirius", "atrium"]) {
    const [arcanaRate, fliteRate] = [await errorRate(server, speaker), await errorRate(flite, speaker)];
    console.info(`${speaker}: ${(100 * arcanaRate).toFixed(1)} %, Flite ${(100 * fliteRate).toFixed(1)} %`);
    expect(arcanaRate, speaker).toBeLessThanOrEqual(0.25);
    if (speaker === "luna") expect(arcanaRate).toBeLessThanOrEqual(2 * fliteRate);
  }
});
