import { request } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunningTier } from "../../../../server/model/tier.ts";
import { eventually } from "../../../support/eventually.ts";
import { ScriptedVllm } from "../../../support/generator/scripted-vllm.ts";
import { tinyCodec } from "../../../support/generator/tiny-model.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { modelTier } from "../../../support/server/model-tier.ts";

/** The model pauses after this many frames: enough for the first audio, and far fewer than requested. */
const framesWritten = 40;
const tokensWritten = framesWritten * tinyCodec.slots.length;

let vllm: ScriptedVllm;
let tier: RunningTier;
let api: TestApi;
beforeAll(async () => {
  vllm = await ScriptedVllm.create();
  const tokens = { kind: "fixed", tokens: ["internal-token"] } as const;
  // With this limit, the pause of the model is not a failure.
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

/** Sends a request, reads the first audio, and closes the connection. */
function disconnectDuringSpeech(): Promise<void> {
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
    const clientRequest = request(`${api.url}/v1/svc-tts`, { method: "POST", headers, agent: false });
    clientRequest.once("response", (response) => {
      response.on("error", () => undefined); // The client closes the connection.
      response.once("data", () => {
        response.destroy();
        resolve();
      });
    });
    clientRequest.once("error", reject);
    clientRequest.end(body);
  });
}

test("a client that disconnects ends the generation in vLLM, through both tiers", async () => {
  for (let attempt = 1; attempt <= 3; attempt++) {
    await disconnectDuringSpeech();
    await eventually("vLLM to notice the disconnect", async () => (await vllm.asked()).hungUp === attempt);
    const { running, lastWritten } = await vllm.asked();
    expect([running, lastWritten.length]).toEqual([0, tokensWritten]);
  }
});
