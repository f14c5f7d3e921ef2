import { request } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunningTier } from "../../../../server/model/tier.ts";
import { eventually } from "../../../support/eventually.ts";
import { ScriptedVllm } from "../../../support/generator/scripted-vllm.ts";
import { tinyCodec } from "../../../support/generator/tiny-model.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { modelTier } from "../../../support/server/model-tier.ts";

/** Frames that the model writes before it holds still: enough for the first sound, far fewer than the caller asked for. */
const framesWritten = 40;
const tokensWritten = framesWritten * tinyCodec.slots.length;

let vllm: ScriptedVllm;
let tier: RunningTier;
let api: TestApi;
beforeAll(async () => {
  vllm = await ScriptedVllm.create();
  const tokens = { kind: "fixed", tokens: ["internal-token"] } as const;
  const model = { ...vllm.settings, hangSeconds: 3_600 }; // a model that holds still is no failure here
  tier = await modelTier({ tier: "arcana", generator: "vllm", model, tokens });
  api = await startTestApi({ arcana: [{ pool: "p", service: tier.url, weight: 100, idle: false }] });
  await vllm.script({ does: "speak", holdsAfter: tokensWritten });
});
afterAll(async () => {
  await api.stop();
  await tier.stop();
  vllm.delete();
});

/** Asks, listens until the first sound, and cuts the connection. */
function leaveAmidSpeech(): Promise<void> {
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
        response.destroy();
        resolve();
      });
    });
    asked.once("error", reject);
    asked.end(body);
  });
}

test("a client's disconnect reaches vLLM through both tiers before its first token, and ends the generation", async () => {
  for (let take = 1; take <= 3; take++) {
    await leaveAmidSpeech();
    await eventually("vLLM knows", async () => (await vllm.asked()).hungUp === take);
    const { running, lastWritten } = await vllm.asked();
    expect([running, lastWritten.length]).toEqual([0, tokensWritten]);
  }
});
