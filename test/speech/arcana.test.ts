/** arcana as it comes, default options, through the public door: understood, soon heard, faster than it plays, on sentences it never met. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { ascending, quantile } from "../../server/bench/quantiles.ts";
import { recognize, type Spoken } from "../support/recognizer.ts";
import { type SpeakingServer, startSpeakingServer } from "../support/speaking-server.ts";
import { englishSentences } from "../support/texts.ts";

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

test("it is understood: at most a quarter of the words are wrong, and with luna at most twice as many as with Flite", async () => {
  for (const speaker of ["luna", "sirius", "atrium"]) {
    const [own, source] = [await errorRate(server, speaker), await errorRate(flite, speaker)];
    console.info(`${speaker}: ${(100 * own).toFixed(1)} %, Flite ${(100 * source).toFixed(1)} %`);
    expect(own, speaker).toBeLessThanOrEqual(0.25);
    if (speaker === "luna") expect(own).toBeLessThanOrEqual(2 * source);
  }
});

test("one stream is heard within 150 ms and made in half the time that it plays", async () => {
  const firstMs: number[] = [];
  const factors: number[] = [];
  for (const text of englishSentences) {
    const startedAt = performance.now();
    const body = { speaker: "luna", modelId: "arcana", text };
    const answer = await server.api.post(body, { accept: "audio/pcm" });
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    let bytes = (await reader.read()).value?.length ?? 0;
    firstMs.push(performance.now() - startedAt);
    for (let next = await reader.read(); !next.done; next = await reader.read()) bytes += next.value.length;
    factors.push((performance.now() - startedAt) / ((1000 * bytes) / 2 / 24_000));
  }
  const [first, factor] = [quantile(ascending(firstMs), 0.5), quantile(ascending(factors), 0.5)];
  console.info(`first audio ${first.toFixed(0)} ms, real-time factor ${factor.toFixed(2)} (medians)`);
  expect(first).toBeLessThanOrEqual(150);
  expect(factor).toBeLessThanOrEqual(0.5);
});
