import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import {
  type ScriptedModel,
  speakUntil,
  startScriptedModel,
} from "../../../support/server/scripted-model.ts";
import { variants } from "../../contract/audio-rows.ts";

let api: TestApi;
let model: ScriptedModel;
let release: () => void;

beforeAll(async () => {
  model = await startScriptedModel((call) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    release = resolve;
    return speakUntil(promise)(call);
  });
  api = await startTestApi(model.url);
});

afterAll(async () => {
  await api.stop();
  await model.close();
});

describe("the server sends the first bytes of", () => {
  it.each(variants.filter(({ form }) => form !== "json"))(
    "$name while the model still synthesizes",
    async ({ accept = "", body }) => {
      const whole = { speaker: "luna", modelId: "arcana", text: "Hello there.", ...body };
      const answer = await api.post(whole, { accept });
      const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
      const { value, done } = await reader.read();
      expect(done).toBe(false);
      expect((value as Uint8Array).length).toBeGreaterThan(44);
      release();
      while (!(await reader.read()).done);
    },
  );
});
