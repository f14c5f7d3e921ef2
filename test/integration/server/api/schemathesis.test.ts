import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { folderOfTests } from "../../../support/folder.ts";
import { pythonWith } from "../../../support/python.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { type ScriptedModel, speakTone, startScriptedModel } from "../../../support/server/scripted-model.ts";

/** The number of examples. `make fuzz` sets a higher number, and no seed. */
const examples = process.env.FUZZ_EXAMPLES ?? "5";
const limitSeconds = process.env.FUZZ_SECONDS ?? "15";
const seed = process.env.FUZZ_EXAMPLES === undefined ? ["--seed", "1"] : [];
const folder = folderOfTests("fuzz");

let api: TestApi;
let model: ScriptedModel;
let python: string;

beforeAll(async () => {
  python = await pythonWith(["schemathesis==4.32.5"]);
  model = await startScriptedModel(speakTone(0.1));
  const database = join(folder, "svc-tts.db"); // With a database, the server has the paths of keys.
  api = await startTestApi(model.url, { database });
});

afterAll(async () => {
  await api.stop();
  await model.close();
});

async function fuzz(): Promise<{ passed: boolean; output: string }> {
  const args = [
    "run",
    `${api.url}/openapi.json`,
    ...["--header", `Authorization: Bearer ${api.key}`],
    ...["--max-examples", examples, "--max-time", limitSeconds, "--request-timeout", "20"],
    ...["--phases", "examples,coverage,fuzzing", "--generation-database", "none", "--no-color"],
    // The schema does not define the voices of each model, so a request that matches it may be rejected.
    ...["--exclude-checks", "positive_data_acceptance"],
    ...seed,
  ];
  const schemathesis = join(python, "..", "schemathesis");
  const run = promisify(execFile)(schemathesis, args, { cwd: folder, maxBuffer: 2 ** 26 });
  return run.then(
    ({ stdout }) => ({ passed: true, output: stdout }),
    (error: { stdout: string; stderr: string }) => ({ passed: false, output: error.stdout + error.stderr }),
  );
}

it("requests that are generated from the OpenAPI document get documented responses, and never a 500", async () => {
  const { passed, output } = await fuzz();
  expect(passed, output).toBe(true);
  expect(output).toMatch(/\d+ generated/);
}, 3_600_000);
