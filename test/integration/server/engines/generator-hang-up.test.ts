import { request } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunningTier } from "../../../../server/model/tier.ts";
import { eventually } from "../../../support/eventually.ts";
import { ScriptedVllm } from "../../../support/generator/scripted-vllm.ts";
import { tinyCodec } from "../../../support/generator/tiny-model.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { modelTier } from "../../../support/server/model-tier.ts";

/** The number of frames before the model pauses: enough for the first audio, and far fewer than requested. */
const framesWritten = 40;
const tokensWritten = framesWritten * tinyCodec.slots.length;

let vllm: ScriptedVllm;
let tier: RunningTier;
let api: TestApi;
beforeAll(async () => {
  vllm = await ScriptedVllm.create();
  const tokens = { kind: "fixed", tokens: ["internal-token"] } as const;
  // a pause of the model is not a failure in this test
  const model = { ...vllm.settings, hangSeconds: 3_600 };
  tier = await modelTier({ tier: "arcana", generator: "vllm", model, tokens });
  api = await startTestApi({ arcana: [{ pool: "p", service: tier.url, weight: 100, idle: false }] });
  await vllm.script({ does: "speak", holdsAfter: tokensWritten });
});
afterAll(async () => {
  await api.stop();
  await tier.stop();
  vllm.delete();
});

/** Sends a request, reads until the first audio, and closes the connection. */
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
      response.on("error", () => undefined); // the client itself closed the connection
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
