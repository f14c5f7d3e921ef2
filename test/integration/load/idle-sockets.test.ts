/**
 * Measures the memory of an API process for each idle WebSocket (specification 11.22). `IDLE_SOCKETS=10000`
 * opens more sockets.
 */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, it } from "vitest";
import { env } from "../../../config/contract/names.ts";
import { routeTo } from "../../support/server/api-tier.ts";
import { type ScriptedModel, startScriptedModel } from "../../support/server/scripted-model.ts";
import {
  makeTierFiles,
  startTierProcess,
  type TierFiles,
  type TierProcess,
} from "../../support/server/tier-process.ts";
import { connectSocket, type SocketClient } from "../../support/sockets/client.ts";
import { speakWords } from "../../support/sockets/scripted-speech.ts";

const sockets = Number(process.env.IDLE_SOCKETS ?? 1500);
/**
 * The number of sockets that are opened before the measurement, which excludes the one-time memory of the
 * process.
 */
const warmUp = 500;
const batchSize = 50;

let files: TierFiles;
let model: ScriptedModel;
let api: TierProcess;
const open: SocketClient[] = [];

beforeAll(async () => {
  files = await makeTierFiles();
  model = await startScriptedModel(speakWords);
  files.route({ mist: routeTo(model.url) });
  api = await startTierProcess("api", files, {
    [env.keySockets]: "20000",
    [env.keySocketsPerSecond]: "20000",
  });
});

afterAll(async () => {
  for (const { socket } of open) socket.terminate();
  await api.kill("SIGKILL");
  await model.close();
  files.remove();
});

async function openSockets(count: number): Promise<void> {
  for (let at = 0; at < count; at += batchSize) {
    const some = Array.from({ length: Math.min(batchSize, count - at) }, () =>
      connectSocket(api.url, "/ws3?speaker=alan&audioFormat=pcm", { key: files.key }),
    );
    open.push(...(await Promise.all(some)));
  }
}

function residentKibibytes(): number {
  const status = readFileSync(`/proc/${api.pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]);
}

it(`${sockets} idle sockets each respond to a ping`, async () => {
  await openSockets(warmUp);
  const before = residentKibibytes();
  await openSockets(sockets);
  const each = (residentKibibytes() - before) / sockets;
  // The documentation quotes the figure. There is no limit, because uncollected garbage changes the figure.
  console.log(`${sockets} idle sockets: ${each.toFixed(1)} KiB of resident memory each`);
  for (let at = 0; at < open.length; at += batchSize) {
    await Promise.all(open.slice(at, at + batchSize).map((client) => client.settled()));
  }
});
