import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ports } from "../../../config/contract/names.ts";
import { leasePortOffset } from "../../../test/support/port-lease.ts";
import { childrenOf, commandOf } from "../../../test/support/processes.ts";

export const program = fileURLToPath(new URL("../../../server/main.ts", import.meta.url));
const readyWithinMs = 120_000;
const key = "the-key-of-a-bench";

export interface RunningServer {
  readonly url: string;
  readonly key: string;
  /** The process IDs by role. `engines` are the engine processes of the mist tier. */
  readonly pids: {
    readonly api: number;
    readonly mist: number;
    readonly engines: readonly number[];
    readonly arcana: number;
    readonly arcanaEngines: readonly number[];
  };
  stop(): Promise<void>;
}

/**
 * Starts the three tiers like `make run`, on free ports and with separate files. `settings` are environment
 * variables (docs/reference/settings.md).
 */
export async function startServer(settings: NodeJS.ProcessEnv = {}): Promise<RunningServer> {
  const home = mkdtempSync(join(tmpdir(), "svc-tts-bench-"));
  const offset = await freeOffset();
  const child = spawn(process.execPath, [program, "all"], {
    env: {
      ...process.env,
      HOME: home,
      PORT_OFFSET: String(offset),
      SVC_TTS_API_KEY: key,
      DEV: "",
      ...settings,
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    rmSync(home, { recursive: true, force: true });
  };
  try {
    await untilSpeaking(child);
    return { url: `http://127.0.0.1:${ports.api + offset}`, key, pids: tiersOf(child.pid ?? 0), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Waits until the tiers are ready. The function prints the log of the tiers, which contains only warnings and
 * errors. If the tiers do not start, the error contains their last output.
 */
async function untilSpeaking(child: ChildProcess): Promise<void> {
  const speaking = Promise.withResolvers<void>();
  let output = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    output = (output + text).slice(-4000);
    if (text.startsWith("{")) process.stderr.write(text);
    if (output.includes("==> ready")) speaking.resolve();
  });
  const failed = (how: string) => speaking.reject(new Error(`The server ${how}. It said: ${output}`));
  child.once("exit", (code) => failed(`ended with ${code}`));
  const late = setTimeout(() => failed("did not start in time"), readyWithinMs);
  await speaking.promise;
  clearTimeout(late);
}

function tiersOf(parent: number): RunningServer["pids"] {
  const tier = (name: string) => {
    const pid = childrenOf(parent).find((child) => commandOf(child).at(-1) === name);
    if (pid === undefined) throw new Error(`the ${name} tier is not among the server's processes`);
    return pid;
  };
  const mist = tier("mist");
  const arcana = tier("arcana");
  return { api: tier("api"), mist, engines: childrenOf(mist), arcana, arcanaEngines: childrenOf(arcana) };
}

/**
 * Returns an offset for the ports of all three tiers. No other process gets this offset while this process
 * runs.
 */
export function freeOffset(): Promise<number> {
  return leasePortOffset([ports.api, ports.model, ports.arcanaBesideMist]);
}
