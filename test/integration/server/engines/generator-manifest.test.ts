import { afterEach, describe, expect, test } from "vitest";
import { voicesOf } from "../../../../config/contract/voices.ts";
import type { Invocation } from "../../../../server/contract/speech.ts";
import type { ServerSettings } from "../../../../server/engine/vllm/settings.ts";
import type { RunningTier } from "../../../../server/model/tier.ts";
import { tinyManifest } from "../../../support/generator/model-folder.ts";
import { ScriptedVllm } from "../../../support/generator/scripted-vllm.ts";
import { special, tinyCodec } from "../../../support/generator/tiny-model.ts";
import type { Script } from "../../../support/scripted-vllm/main.ts";
import { coldModelTier, hear, modelTier } from "../../../support/server/model-tier.ts";

/** Tests the fields of a model's manifest with a simulated vLLM on real sockets. */

const { pre, post } = tinyManifest.prompt;
const frame = [1, 2, 3, 4, 5, 6, 7];
const frameIds = frame.map((code, slot) => tinyCodec.base + slot * tinyCodec.codebook + code);
const arcana: Partial<Invocation> = {
  modelId: "arcana",
  speaker: "luna",
  text: "Hello there.",
  sampling: { repetitionPenalty: 1.5, temperature: 0.5, topP: 1, maxTokens: 70 },
};

let vllm: ScriptedVllm | undefined;
let tier: RunningTier | undefined;
afterEach(async () => {
  await tier?.stop();
  vllm?.delete();
  [tier, vllm] = [undefined, undefined];
});

/** Starts an arcana tier with a manifest in which these fields differ. */
async function start(
  change: object,
  script: Script = { does: "speak" },
): Promise<{ url: string; vllm: ScriptedVllm }> {
  vllm = await ScriptedVllm.create(change);
  const environment = { SCRIPT: JSON.stringify(script) };
  const server = { ...vllm.settings.server, environment } as ServerSettings;
  tier = await modelTier({ tier: "arcana", generator: "vllm", model: { ...vllm.settings, server } });
  return { url: tier.url, vllm };
}

async function lastAsked(own: ScriptedVllm) {
  const last = (await own.asked()).asked.at(-1);
  if (!last) throw new Error("vLLM got no request");
  return last;
}

/** Returns the letters of a prompt between the tokens of the manifest. The tokenizer has one token for each byte. */
function letters(prompt: readonly number[]): string {
  return Buffer.from(prompt.slice(pre.length, -post.length)).toString();
}

describe("sampling defaults in the manifest", () => {
  test("apply to the options that a request does not set, and not to the others", async () => {
    const own = await start({ sampling: { repetitionPenalty: 1.1, temperature: 0.6 } });
    await hear(own.url, { ...arcana, unsetSampling: ["repetitionPenalty", "topP"] });
    expect(await lastAsked(own.vllm)).toMatchObject({
      repetition_penalty: 1.1,
      temperature: 0.5,
      top_p: 1,
      max_tokens: 70,
    });
    // API tiers of older versions do not report which options are set.
    await hear(own.url, arcana);
    expect(await lastAsked(own.vllm)).toMatchObject({ repetition_penalty: 1.5, temperature: 0.5 });
  });

  test("limit the phrases of requests that set no limit", async () => {
    const own = await start({ sampling: { maxTokens: 35 } });
    const { samples } = await hear(own.url, { ...arcana, unsetSampling: ["maxTokens"] });
    expect(samples.length).toBe(5 * tinyCodec.frameSamples);
  });
});

test("a description is part of the prompt of its voice", async () => {
  const voices = Object.fromEntries(
    voicesOf("arcana").map(({ id }) => [id, { name: "v", description: `a ${id} voice` }]),
  );
  const own = await start({ voices, prompt: { ...tinyManifest.prompt, template: "<{description}> {text}" } });
  await hear(own.url, { ...arcana, speaker: "astra" });
  expect(letters((await lastAsked(own.vllm)).prompt)).toBe("<a astra voice> Hello there.");
});

test("reference codes precede the speech that the model writes, and are not spoken", async () => {
  const reference = { text: "Good day.", codes: frame };
  const voices = Object.fromEntries(voicesOf("arcana").map(({ id }) => [id, { name: id, reference }]));
  const prompt = {
    ...tinyManifest.prompt,
    template: "{reference} {text}",
    reference: { placement: "continuation" },
  };
  const own = await start({ voices, prompt });
  const { samples } = await hear(own.url, arcana);
  expect((await lastAsked(own.vllm)).prompt).toEqual([
    ...pre,
    ...Buffer.from("Good day. Hello there."),
    ...post,
    ...frameIds,
  ]);
  expect(samples.length).toBe(10 * tinyCodec.frameSamples);
});

test("with the frontend phonemes, the prompt contains the sounds of the words", async () => {
  const own = await start({
    prompt: { ...tinyManifest.prompt, frontend: "phonemes", espeak: "en-us", template: "{text}" },
  });
  await hear(own.url, { ...arcana, text: "Three ships." });
  const prompt = letters((await lastAsked(own.vllm)).prompt);
  expect(prompt).toMatch(/^θɹˈiː? ʃˈɪps\.$/u);
});

test("an unknown eSpeak NG voice in the manifest causes an error at the start", async () => {
  vllm = await ScriptedVllm.create({
    prompt: { ...tinyManifest.prompt, frontend: "phonemes", espeak: "xx-none" },
  });
  tier = await coldModelTier({ tier: "arcana", generator: "vllm", model: vllm.settings });
  await expect(tier.warmed).rejects.toThrow();
});

describe("a start token", () => {
  test("separates other tokens from the speech", async () => {
    const preamble = [5, 6, tinyCodec.base, special.speech];
    const own = await start({ startAfter: special.speech }, { does: "speak", preamble });
    const { samples } = await hear(own.url, arcana);
    expect(samples.length).toBe(10 * tinyCodec.frameSamples);
    // The model has to write the tokens before the speech too, so the list of allowed tokens is absent.
    expect(await lastAsked(own.vllm)).not.toHaveProperty("allowed_token_ids");
  });
});

test("the server of a model that returns audio gets the description as instructions", async () => {
  vllm = await ScriptedVllm.create();
  const { license } = tinyManifest;
  const voices = Object.fromEntries(
    voicesOf("arcana").map(({ id }) => [id, { name: "ryan", description: "calm" }]),
  );
  const manifest = {
    kind: "audio",
    license,
    voices,
    sha256: vllm.model.sha256,
    rate: 24_000,
    sampling: { temperature: 0.9 },
  };
  vllm.model.write("manifest.json", JSON.stringify(manifest));
  tier = await modelTier({ tier: "arcana", generator: "vllm", model: vllm.settings });
  await hear(tier.url, { ...arcana, unsetSampling: ["temperature"] });
  expect((await vllm.asked()).askedAudio.at(-1)).toMatchObject({
    voice: "ryan",
    instructions: "calm",
    temperature: 0.9,
    input: "Hello there.",
  });
});
