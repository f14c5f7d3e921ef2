import { readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ModelId } from "../../../config/contract/models.ts";
import { voices as builtInVoices, findVoice, type Voice } from "../../../config/contract/voices.ts";
import { Engines } from "../../../server/engine/engines.ts";
import { openEspeak } from "../../../server/engine/espeak/engine.ts";
import { MountedVoices, type MountOptions } from "../../../server/engine/neural/mounted-voices.ts";
import type { ProcessPool } from "../../../server/engine/runtime/process-pool.ts";
import { reportVoices } from "../../../server/model/voice-report.ts";
import { loadPreset } from "../../../server/presets/preset.ts";
import { eventually } from "../../support/eventually.ts";
import { VoicesFolder } from "../../support/voices/folder.ts";

const log = { info: () => undefined, warn: () => undefined };

let reader: ProcessPool;
beforeAll(async () => {
  reader = await openEspeak({ processes: 1, log });
});
afterAll(() => reader.close());

let folder: VoicesFolder;
let mounted: MountedVoices | undefined;
beforeEach(() => {
  folder = new VoicesFolder();
});
afterEach(async () => {
  await mounted?.close();
  mounted = undefined;
  folder.delete();
});

interface Opened extends Partial<Pick<MountOptions, "folder" | "installed" | "models" | "naturalModels">> {}

async function open(choice: Opened): Promise<MountedVoices> {
  const models = ["mist", "mistv2"] as const;
  const options = { models, cores: 1, providers: ["cpu"], log, reader, intervalMs: 50 };
  mounted = await MountedVoices.open({ ...options, ...choice });
  return mounted;
}

/** Writes a Kokoro model. The first voice has the additional fields. */
function kokoro(change: object, language = "spa"): void {
  folder.kokoro("koko", { espeak: language === "spa" ? "es" : "en-us" });
  const path = join(folder.path, "koko/manifest.json");
  const manifest = JSON.parse(readFileSync(path, "utf8")) as { voices: object[] };
  const voices = manifest.voices.map((voice, i) => ({ ...voice, language, ...(i === 0 && change) }));
  folder.json("koko/manifest.json", { ...manifest, voices });
}

function builtIn(id: string): Voice {
  const voice = findVoice(id);
  if (!voice) throw new Error(`the catalogue has no voice ${id}`);
  return voice;
}

function engineIn(engines: Engines, id: string, model: ModelId): string {
  const speaker = engines.speakerFor(builtIn(id), model);
  speaker.release();
  return speaker.engine.name;
}

describe("a mounted voice that replaces a built-in voice", () => {
  test("is used while its model is loaded, and the list of voices has its engine", async () => {
    kokoro({ replaces: ["lucia"] });
    const voices = await open({ folder: folder.path });
    expect(voices.problems()).toEqual([]);
    const engines = new Engines(new Map([["espeak", reader]]), [], voices);
    const engineOf = (id: string) => engineIn(engines, id, "mist");
    expect([engineOf("lucia"), engineOf("diego")]).toEqual(["kokoro", "espeak"]);
    const report = reportVoices(engines, "mist");
    expect(report.builtIn.filter(({ id }) => id === "lucia" || id === "diego")).toEqual([
      { id: "lucia", model: "mist", engine: "kokoro", license: "Apache-2.0" },
      { id: "lucia", model: "mistv2", engine: "kokoro", license: "Apache-2.0" },
      { id: "diego", model: "mist", engine: "espeak", license: builtIn("diego").license },
      { id: "diego", model: "mistv2", engine: "espeak", license: builtIn("diego").license },
    ]);
    expect(report).toMatchObject({
      voices: [
        { id: "koko-a", engine: "kokoro", replaces: ["lucia"] },
        { id: "koko-b", engine: "kokoro" },
      ],
      models: [{ engine: "kokoro", variant: "original graph", models: ["mist", "mistv2"] }],
    });
    folder.remove("koko");
    await eventually("the built-in engine", () => engineOf("lucia") === "espeak");
  });

  test.each([
    ["ghost", {}, /ghost is not a built-in voice/],
    ["claire", {}, /claire has language fra, and this voice has spa/],
    ["lucia", { models: ["mist"] }, /lucia is also a voice of mistv2, and this voice is not/],
    [
      "claire",
      { replaces: undefined, mayReplace: ["claire"] },
      /claire has language fra, and this voice has spa/,
      "mayReplace",
    ],
  ])("is reported as invalid if it cannot replace %s", async (id, change, message, of = "replaces") => {
    kokoro({ replaces: [id], ...change });
    const voices = await open({ folder: folder.path });
    const field = `/voices/0/${of}/0`;
    expect(voices.problems()).toEqual([
      { file: "koko/manifest.json", field, message: expect.stringMatching(message) },
    ]);
  });
});

describe("a mounted voice that may replace a built-in voice", () => {
  const may = { mayReplace: ["alan", "luna"] };

  test.each<[string, Opened, mist: string, mistv2: string]>([
    ["no model", {}, "espeak", "espeak"],
    ["mist", { naturalModels: ["mist"] }, "kokoro", "espeak"],
  ])("replaces it only in the models of naturalModels: %s", async (_models, settings, mist, mistv2) => {
    kokoro(may, "eng");
    const engines = new Engines(
      new Map([["espeak", reader]]),
      [],
      await open({ folder: folder.path, ...settings }),
    );
    expect(engineIn(engines, "alan", "mist")).toBe(mist);
    expect(engineIn(engines, "alan", "mistv2")).toBe(mistv2);
    expect(engines.builtInSpeakerFor(builtIn("alan")).engine.name).toBe("espeak");
    const reported = reportVoices(engines, "mist").builtIn.filter(({ id }) => id === "alan");
    expect(reported.map(({ engine }) => engine)).toEqual([mist, mistv2]);
  });

  test("is loaded for arcana only if naturalModels has arcana, and is not listed as a voice of arcana", async () => {
    kokoro(may, "eng");
    const arcana = { folder: folder.path, models: ["arcana"] } as const;
    const without = await open(arcana);
    expect(without.models()).toEqual([]);
    await without.close();
    const voices = await open({ ...arcana, naturalModels: ["arcana"] });
    const engines = new Engines(new Map([["flite", reader]]), [], voices);
    expect(voices.voices()).toEqual([]);
    expect(voices.models()).toMatchObject([{ engine: "kokoro", models: ["arcana"] }]);
    expect([engineIn(engines, "luna", "arcana"), engineIn(engines, "astra", "arcana")]).toEqual([
      "kokoro",
      "espeak",
    ]);
  });

  test("of Kokoro-82M exists for every English built-in voice, with a suitable gender", () => {
    const { manifest } = loadPreset("kokoro-82m");
    if (manifest.kind !== "kokoro") throw new Error("the manifest is not one of Kokoro");
    const replaceable = manifest.voices.flatMap(({ mayReplace = [], gender }) =>
      mayReplace.map((id) => ({ id, gender })),
    );
    const english = builtInVoices.filter(({ language }) => language === "eng");
    expect(replaceable.map(({ id }) => id).toSorted()).toEqual(english.map(({ id }) => id).toSorted());
    for (const { id, gender } of replaceable) expect([gender, "neutral"], id).toContain(builtIn(id).gender);
  });
});

describe("the folder of installed models", () => {
  test("may contain a model of arcana, which is no problem for mounted voices", async () => {
    folder.json("orpheus-3b/manifest.json", { kind: "tokens", license: "x" });
    const mountedByUser = await open({ folder: folder.path });
    expect(mountedByUser.problems().map(({ field }) => field)).toEqual(["/kind"]);
    await mountedByUser.close();
    folder.json("orpheus-3b/installed.json", { preset: "orpheus-3b" });
    const installed = await open({ installed: folder.path });
    expect([installed.voices(), installed.problems()]).toEqual([[], []]);
  });

  test("may appear later, and does not delay the start", async () => {
    const installed = join(folder.path, "installed");
    const voices = await open({ installed });
    expect([voices.voices(), voices.problems()]).toEqual([[], []]);
    kokoro({});
    const staged = join(folder.path, "staged");
    folder.write("staged/.keep", "");
    renameSync(join(folder.path, "koko"), join(staged, "koko"));
    renameSync(staged, installed);
    await eventually("the voices of the folder", () => voices.voices().length === 2);
  });

  test("is used in addition to the mounted folder, and its voices are listed after the mounted voices", async () => {
    const other = new VoicesFolder();
    other.piper("mona");
    kokoro({});
    const voices = await open({ folder: other.path, installed: folder.path });
    await eventually("the voices of both folders", () => voices.voices().length === 3);
    expect(voices.voices().map(({ id }) => id)).toEqual(["mona", "koko-a", "koko-b"]);
    other.delete();
  });
});
