/** Tests the load generator that tests on a cluster run in a pod. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import {
  allStreaming,
  type LoadReport,
  type LoadSettings,
  loadProgram,
} from "../../support/cluster/load-program.ts";
import { eventually } from "../../support/eventually.ts";
import { folderOfTests } from "../../support/folder.ts";
import { startTestApi, type TestApi } from "../../support/server/api-tier.ts";
import { fail, type ScriptedModel, startScriptedModel } from "../../support/server/scripted-model.ts";
import { speakWords } from "../../support/sockets/scripted-speech.ts";

const folder = folderOfTests("cluster-load");
const stops: (() => unknown)[] = [];
let runs = 0;

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function startServer(script: ScriptedModel["script"]): Promise<TestApi> {
  const model = await startScriptedModel(script);
  stops.push(() => model.close());
  const api = await startTestApi(model.url);
  stops.push(() => api.stop());
  return api;
}

/** Starts the load generator. `stop` returns its report. */
function startLoad(api: TestApi, clients: Pick<LoadSettings, "streams" | "sockets">) {
  const stopFile = join(folder, `stop-${runs++}`);
  const settings = { ...clients, listening: false, stopFile, limitSeconds: 600, key: api.key };
  const body = { text: "Hello there.", speaker: "abbie", modelId: "mist", samplingRate: 8000 };
  const args = [`${api.url}/v1/svc-tts`, JSON.stringify(body), JSON.stringify(settings)];
  const child: ChildProcess = spawn(process.execPath, ["--input-type=module", "-e", loadProgram, ...args]);
  stops.push(() => child.kill("SIGKILL"));
  let output = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const closed = once(child, "close");
  return {
    lines: (line: string) => output.split("\n").filter((found) => found === line).length,
    stop: async (): Promise<LoadReport> => {
      writeFileSync(stopFile, "");
      await closed;
      return JSON.parse(output.split("\n").find((line) => line.startsWith("{")) ?? "{}") as LoadReport;
    },
  };
}

it("counts complete responses and contexts, and their sizes", async () => {
  const load = startLoad(await startServer(speakWords), { streams: 2, sockets: 2 });
  await eventually("every client has audio", () => load.lines(allStreaming) === 1);
  await eventually("responses and contexts", () => load.lines("answered") >= 4 && load.lines("spoken") >= 4);
  const report = await load.stop();
  expect(report).toMatchObject({ failed: 0, failures: [], sizes: [4800], contextSizes: [4800] });
  expect(report.ok).toBeGreaterThanOrEqual(4);
  expect(report.contexts).toBeGreaterThanOrEqual(4);
});

it("reports interrupted contexts", async () => {
  let calls = 0;
  const api = await startServer((call) => (++calls % 2 === 0 ? fail()(call) : speakWords(call)));
  const load = startLoad(api, { streams: 0, sockets: 1 });
  await eventually("two contexts and a failure between them", () => load.lines("spoken") >= 2);
  const report = await load.stop();
  expect(report.failed).toBeGreaterThanOrEqual(1);
  expect(report.failures[0]?.what).toMatch(/^error on the socket: /);
});

it("reports no failed context while a server drains, and then only refused upgrades", async () => {
  const model = await startScriptedModel(speakWords);
  stops.push(() => model.close());
  const api = await startTestApi(model.url);
  const load = startLoad(api, { streams: 0, sockets: 2 });
  await eventually("contexts", () => load.lines("spoken") >= 2);
  await api.stop();
  const report = await load.stop();
  const problems = new Set(report.failures.map(({ what }) => what));
  expect([...problems].filter((what) => what !== "Error: the upgrade failed: 1006")).toEqual([]);
  expect(report.contextSizes).toEqual([4800]);
});
