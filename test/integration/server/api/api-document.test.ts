import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { voices } from "../../../../config/contract/voices.ts";
import { openaiModels, openaiVoices } from "../../../../server/api/openai/names.ts";
import { decodeAudio, toneOf } from "../../../support/audio/audio.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { parseEvents } from "../../../support/server/events.ts";
import { type ScriptedModel, startScriptedModel } from "../../../support/server/scripted-model.ts";

/** The test runs every code block of these pages. */
const pages = ["docs/how-to/call-the-api.md", "docs/how-to/use-openai-clients.md"];
const textOf = (page: string) => readFileSync(join(import.meta.dirname, "../../../..", page), "utf8");

interface Example {
  readonly page: string;
  readonly language: string;
  readonly code: string;
  /** The files that the example writes. */
  readonly files: readonly string[];
  readonly line: number;
}

const examples: readonly Example[] = pages.flatMap((page) => {
  const text = textOf(page);
  return [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map((match) => {
    const [, language = "", code = ""] = match;
    const files = [...code.matchAll(/\b[\w-]+\.(?:wav|mp3|ogg|json|txt)\b(?!\()/g)].map(([name]) => name);
    return { page, language, code, files, line: text.slice(0, match.index).split("\n").length };
  });
});

const programs: Readonly<Record<string, readonly [program: string, file: string]>> = {
  sh: ["bash", "example.sh"],
  python: ["python3", "example.py"],
  javascript: [process.execPath, "example.mjs"],
};

const folders = folderOfTests("examples");

let model: ScriptedModel;
let api: TestApi;
let folder: string;

beforeAll(async () => {
  model = await startScriptedModel(async (call) => {
    await call.head(24_000);
    for (let i = 0; i < 5; i++) await call.tone(2400, 24_000);
    await call.send({ kind: "words", words: [{ word: "Hello", start: 0, end: 0.5 }] });
    await call.end(12_000);
  });
  api = await startTestApi(model.url, { voices });
});

afterAll(async () => {
  await api.stop();
  await model.close();
});

beforeEach(() => {
  folder = mkdtempSync(join(folders, "example-"));
});

async function expectWritten(name: string): Promise<void> {
  const bytes = readFileSync(join(folder, name));
  if (name === "oovs.json") {
    expect(JSON.parse(bytes.toString())).toEqual({ oovs: expect.any(Array) });
  } else if (name === "words.json") {
    expect(JSON.parse(bytes.toString())).toEqual({ words: ["Hello"], start: [0], end: [0.5] });
  } else if (name === "events.txt") {
    expect(parseEvents(bytes.toString()).at(-1)?.name).toBe("done");
  } else {
    expect(Math.abs(toneOf(await decodeAudio(bytes)) - 440)).toBeLessThan(2);
  }
}

describe("the guides to the API", () => {
  it("have examples in curl, Python and JavaScript", () => {
    expect(new Set(examples.map(({ language }) => language))).toEqual(new Set(Object.keys(programs)));
  });

  it.each(examples)(
    "$page has an example in $language at line $line that runs unchanged",
    async (example) => {
      const [program, file] = programs[example.language] as readonly [string, string];
      writeFileSync(join(folder, file), example.code);
      await promisify(execFile)(program, example.language === "sh" ? ["-eo", "pipefail", file] : [file], {
        cwd: folder,
        env: { ...process.env, SVC_TTS_URL: api.url, SVC_TTS_API_KEY: api.key },
      });
      expect(example.files.length).toBeGreaterThan(0);
      for (const name of example.files) await expectWritten(name);
    },
  );

  it("list the same models and voices of OpenAI as the code", () => {
    const text = textOf("docs/how-to/use-openai-clients.md");
    const rows = [...text.matchAll(/^\| `([\w-]+)` \| `(\w+)` \|$/gm)].map(([, name, id]) => [name, id]);
    expect(rows).toEqual([...Object.entries(openaiModels), ...Object.entries(openaiVoices)]);
  });
});
