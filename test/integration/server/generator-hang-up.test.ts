import { request } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunningTier } from "../../../server/model/tier.ts";
import { startTestApi, type TestApi } from "../../support/api-tier.ts";
import { eventually } from "../../support/eventually.ts";
import { ScriptedVllm } from "../../support/generator/scripted-vllm.ts";
import { modelTier } from "../../support/model-tier.ts";

/** Of six, the quickest: what else the machine does meanwhile is not ours. A wait or a look now and then in our own way would be in all of them. */
const takes = 6;
const mostOfOursMs = 100;

let vllm: ScriptedVllm;
let tier: RunningTier;
let api: TestApi;
beforeAll(async () => {
  vllm = await ScriptedVllm.create();
  const tokens = { kind: "fixed", tokens: ["internal-token"] } as const;
  const model = { ...vllm.settings, hangSeconds: 30 }; // whether it hangs is not looked at here
  tier = await modelTier({ tier: "arcana", generator: "vllm", model, tokens });
  api = await startTestApi({ arcana: [{ pool: "p", service: tier.url, weight: 100, idle: false }] });
  await vllm.script({ does: "speak", tokensPerSecond: 200 });
});
afterAll(async () => {
  await api.stop();
  await tier.stop();
  vllm.delete();
});

function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Asks, listens until the first sound, cuts the connection, and tells when. */
function leaveAmidSpeech(): Promise<number> {
  const body = JSON.stringify({
    modelId: "arcana",
    speaker: "luna",
    text: "Hello there.",
    max_tokens: 5000,
    samplingRate: 24_000,
  });
  const headers = {
    authorization: `Bearer ${api.key}`,
    "content-type": "application/json",
    accept: "audio/pcm",
  };
  return new Promise((resolve, reject) => {
    const asked = request(`${api.url}/v1/svc-tts`, { method: "POST", headers, agent: false });
    asked.once("response", (response) => {
      response.on("error", () => undefined); // it is we who cut it
      response.once("data", () => {
        resolve(nowMs());
        response.destroy();
      });
    });
    asked.once("error", reject);
    asked.end(body);
  });
}

test("a caller's end reaches vLLM, through both tiers, in milliseconds", async () => {
  const tookMs: number[] = [];
  for (let take = 1; take <= takes; take++) {
    const leftAtMs = await leaveAmidSpeech();
    await eventually("vLLM knows", async () => (await vllm.asked()).hungUpAtMs.length === take);
    tookMs.push(((await vllm.asked()).hungUpAtMs.at(-1) ?? 0) - leftAtMs);
  }
  console.log(`from the caller's end to vLLM's, ms: ${tookMs.map((ms) => ms.toFixed(1)).join(" ")}`);
  expect(Math.min(...tookMs)).toBeLessThan(mostOfOursMs);
});
