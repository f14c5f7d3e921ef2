import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { env as names } from "../../../config/contract/names.ts";
import { prepareRunFiles } from "../../../server/cli/run-files.ts";
import { leasePort } from "../../../test/support/port-lease.ts";
import type { Served } from "../common/load.ts";
import { program } from "../common/running-server.ts";

const replayProgram = fileURLToPath(new URL("../replay/main.ts", import.meta.url));
const key = "the-key-of-a-bench";
const readyWithinMs = 60_000;

/** An API tier in its own process, in front of a model tier that replays audio. */
export interface ApiAlone extends Served {
  readonly pid: number;
  stop(): Promise<void>;
}

/** The options of the load tool for requests that the replayed model supports. */
export const replayOptions = ["--model", "arcana", "--voice", "luna"];

/**
 * Starts an API tier in front of a model tier that replays audio.
 * @param more additional environment variables (docs/reference/settings.md).
 */
export async function startApiAlone(more: NodeJS.ProcessEnv = {}): Promise<ApiAlone> {
  const folder = mkdtempSync(join(tmpdir(), "svc-tts-bench-"));
  const replay = spawn(process.execPath, [replayProgram], { stdio: ["ignore", "pipe", "inherit", "ipc"] });
  const children: ChildProcess[] = [replay];
  const stop = async () => {
    await Promise.all(children.map(stopChild));
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const port = await leasePort();
    const api = await startApi(folder, await portOf(replay), port, more);
    children.unshift(api);
    const url = `http://127.0.0.1:${port}`;
    await untilHealthy(url);
    return { url, key, pid: api.pid ?? 0, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startApi(
  folder: string,
  modelPort: number,
  port: number,
  more: NodeJS.ProcessEnv,
): Promise<ChildProcess> {
  const files = await prepareRunFiles({
    folder,
    ports: { mist: modelPort, arcana: modelPort },
    now: Date.now(),
  });
  const settings = {
    [names.host]: "127.0.0.1",
    [names.port]: String(port),
    [names.logLevel]: "warn",
    [names.drainSeconds]: "0",
    [names.apiKey]: key,
    [names.tokenDir]: files.tokenDir,
    [names.keysFile]: files.keysFile,
    [names.licenseFile]: files.licenseFile,
    [names.licenseKeysFile]: files.licenseKeysFile,
    [names.routingFile]: files.routingFile,
  };
  const env = { ...process.env, ...settings, ...more, NODE_OPTIONS: imageNodeOptions() };
  return spawn(process.execPath, [program, "api"], { env, stdio: ["ignore", "inherit", "inherit"] });
}

/** Returns Node's options of the server image, so that the measured memory is the memory of a container. */
function imageNodeOptions(): string {
  const containerfile = readFileSync(new URL("../../../Containerfile", import.meta.url), "utf8");
  const stage = containerfile.split(/^FROM /m).find((text) => / AS server\n/.test(text)) ?? "";
  const options = /^ENV NODE_OPTIONS=(\S+)$/m.exec(stage)?.[1];
  if (options === undefined) throw new Error("Containerfile's stage server has no line ENV NODE_OPTIONS=…");
  return options;
}

async function portOf(replay: ChildProcess): Promise<number> {
  if (!replay.stdout) throw new Error("the replayed model has no output");
  const [line] = (await once(replay.stdout, "data")) as [Buffer];
  return Number(line.toString());
}

async function untilHealthy(url: string): Promise<void> {
  const lateAt = performance.now() + readyWithinMs;
  while (performance.now() < lateAt) {
    const healthy = await fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false, // The server does not listen yet.
    );
    if (healthy) return;
    await sleep(50);
  }
  throw new Error("the API tier did not start in time");
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}
