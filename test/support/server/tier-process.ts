/**
 * Runs tiers as separate processes, as in containers. A test can kill such a process, and measure its memory
 * and file descriptors.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ModelKind } from "../../../config/contract/models.ts";
import { env as names } from "../../../config/contract/names.ts";
import type { RoutingTable } from "../../../config/contract/routing.ts";
import { prepareRunFiles, type RunFiles } from "../../../server/cli/run-files.ts";
import { eventually } from "../eventually.ts";
import { leasePort } from "../port-lease.ts";

const main = fileURLToPath(new URL("../../../server/main.ts", import.meta.url));

type Environment = Readonly<Record<string, string>>;

export interface TierProcess {
  readonly url: string;
  readonly pid: number;
  /** Returns the output of the process so far, from stdout and stderr. */
  said(): string;
  /** Sends the signal, and resolves when the process has exited. */
  kill(signal: NodeJS.Signals): Promise<void>;
}

/** The files that tiers share: API keys, the internal token, and a license. */
export interface TierFiles extends RunFiles {
  route(models: RoutingTable["models"]): void;
  remove(): void;
}

export async function makeTierFiles(): Promise<TierFiles> {
  const folder = mkdtempSync(join(tmpdir(), "svc-tts-tiers-"));
  const files = await prepareRunFiles({ folder, ports: { mist: 0, arcana: 0 }, now: Date.now() });
  const route: TierFiles["route"] = (models) =>
    writeFileSync(files.routingFile, JSON.stringify({ version: 1, profile: "self-hosted", models }));
  return { ...files, route, remove: () => rmSync(folder, { recursive: true }) };
}

/** Starts a tier. Resolves when the tier is ready. */
export async function startTierProcess(
  tier: "api" | ModelKind,
  files: TierFiles,
  environment: Environment = {},
): Promise<TierProcess> {
  const port = await leasePort();
  const child = spawn(process.execPath, [main, tier], {
    env: { ...process.env, ...environmentOf(files, port), ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const pieces: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => pieces.push(piece));
  const said = () => Buffer.concat(pieces).toString();
  const url = `http://127.0.0.1:${port}`;
  try {
    await eventually(`${tier} is ready`, () => isReady(url, child), { seen: said });
  } catch (error) {
    await end(child, "SIGKILL");
    throw error;
  }
  return { url, pid: child.pid ?? 0, said, kill: (signal) => end(child, signal) };
}

function environmentOf(files: TierFiles, port: number): Environment {
  return {
    [names.host]: "127.0.0.1",
    [names.port]: String(port),
    [names.logLevel]: "warn",
    [names.drainSeconds]: "5",
    [names.tokenDir]: files.tokenDir,
    [names.keysFile]: files.keysFile,
    [names.licenseFile]: files.licenseFile,
    [names.licenseKeysFile]: files.licenseKeysFile,
    [names.routingFile]: files.routingFile,
    [names.routingConfigMap]: "",
  };
}

async function isReady(url: string, child: ChildProcess): Promise<boolean> {
  if (child.exitCode !== null) throw new Error(`the process ended with exit code ${child.exitCode}`);
  try {
    return (await fetch(`${url}/ready`, { headers: { connection: "close" } })).ok;
  } catch {
    return false; // The tier does not listen yet.
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill(signal);
  await exited;
}

/** Returns the number of open file descriptors of a process. */
export function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}
