import { readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { findVoice, type Voice } from "../../../config/contract/voices.ts";
import { Engines } from "../../../server/engine/engines.ts";
import { openEspeak } from "../../../server/engine/espeak/engine.ts";
import { MountedVoices } from "../../../server/engine/neural/mounted-voices.ts";
import type { ProcessPool } from "../../../server/engine/runtime/process-pool.ts";
import { listMounted } from "../../../server/model/mounted.ts";
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

async function open(folders: { folder?: string; installed?: string }): Promise<MountedVoices> {
  const models = ["mist", "mistv2"] as const;
  const options = { models, cores: 1, providers: ["cpu"], log, reader, intervalMs: 50 };
  mounted = await MountedVoices.open({ ...folders, ...options });
  return mounted;
}

/** A Kokoro model whose first voice has these additional fields. */
function kokoro(change: object): void {
  folder.kokoro("koko", { espeak: "es" });
  const path = join(folder.path, "koko/manifest.json");
  const manifest = JSON.parse(readFileSync(path, "utf8")) as { voices: object[] };
  const voices = manifest.voices.map((voice, i) => ({ ...voice, language: "spa", ...(i === 0 && change) }));
  folder.json("koko/manifest.json", { ...manifest, voices });
}

function builtIn(id: string): Voice {
  const voice = findVoice(id);
  if (!voice) throw new Error(`${id} is a built-in voice`);
  return voice;
}

describe("a mounted voice that replaces a built-in one", () => {
  test("is used while its model is loaded, and the list of voices names its engine", async () => {
    kokoro({ replaces: ["lucia"] });
    const voices = await open({ folder: folder.path });
    expect(voices.problems()).toEqual([]);
    const engines = new Engines(new Map([["espeak", reader]]), [], voices);
    const engineOf = (id: string) => {
      const speaker = engines.speakerFor(builtIn(id));
      speaker.release();
      return speaker.engine.name;
    };
    expect([engineOf("lucia"), engineOf("diego")]).toEqual(["kokoro", "espeak"]);
    expect(listMounted(voices)).toMatchObject({
      voices: [
        { id: "koko-a", engine: "kokoro", replaces: ["lucia"] },
        { id: "koko-b", engine: "kokoro" },
      ],
      models: [{ engine: "kokoro", variant: "graph as it came", models: ["mist", "mistv2"] }],
    });
    folder.remove("koko");
    await eventually("the built-in engine speaks again", () => engineOf("lucia") === "espeak");
  });

  test.each([
    ["ghost", {}, /ghost is no built-in voice/],
    ["claire", {}, /claire speaks fra, and this voice spa/],
    ["lucia", { models: ["mist"] }, /lucia also speaks with mistv2, and this voice does not/],
  ])("is refused if it cannot replace that voice: %s", async (id, change, message) => {
    kokoro({ replaces: [id], ...change });
    const voices = await open({ folder: folder.path });
    const field = "/voices/0/replaces/0";
    expect(voices.problems()).toEqual([
      { file: "koko/manifest.json", field, message: expect.stringMatching(message) },
    ]);
  });
});

describe("the folder of installed models", () => {
  test("may appear later, and does not delay the start", async () => {
    const installed = join(folder.path, "installed");
    const voices = await open({ installed });
    expect([voices.voices(), voices.problems()]).toEqual([[], []]);
    kokoro({});
    const staged = join(folder.path, "staged");
    folder.write("staged/.keep", "");
    renameSync(join(folder.path, "koko"), join(staged, "koko"));
    renameSync(staged, installed);
    await eventually("its voices speak", () => voices.voices().length === 2);
  });

  test("is used in addition to the mounted folder, which is loaded first", async () => {
    const other = new VoicesFolder();
    other.piper("mona");
    kokoro({});
    const voices = await open({ folder: other.path, installed: folder.path });
    await eventually("all speak", () => voices.voices().length === 3);
    expect(voices.voices().map(({ id }) => id)).toEqual(["mona", "koko-a", "koko-b"]);
    other.delete();
  });
});
