import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Tier } from "../../config/contract/models.ts";
import { env as names, ports } from "../../config/contract/names.ts";
import { voices } from "../../config/contract/voices.ts";
import { type Command, type Shell, UsageError } from "./command.ts";
import { prepareRunFiles, type RunFiles } from "./run-files.ts";
import { type Environment, readPortOffset } from "./settings.ts";

type Part = "api" | Tier;
type Ports = Readonly<Record<Part, number>>;

const parts: readonly Part[] = ["mist", "arcana", "api"];
const host = "127.0.0.1";
/** Streams finish within this when the three are stopped. */
const drainSeconds = 5;
/** Past the drain, a part that still runs is killed. */
const killAfterMs = (drainSeconds + 5) * 1000;
const readyWithinMs = 120_000;

export const allCommand: Command = {
  name: "all",
  summary: "run the three tiers on this machine: API 8000, mist 8080, arcana 8090",
  options: {},
  notes: [
    "PORT_OFFSET=N shifts all three ports. DEV=1 restarts a tier when its files change.",
    "SVC_TTS_API_KEY=KEY is accepted as one more key. SVC_TTS_LOG_LEVEL (default warn) says how much the tiers tell.",
  ].join("\n"),
  run: runAll,
};

async function runAll(shell: Shell): Promise<number> {
  const offset = readPortOffset(shell.env);
  const shifted: Ports = {
    api: ports.api + offset,
    mist: ports.model + offset,
    arcana: ports.arcanaBesideMist + offset,
  };
  for (const part of parts) await requireFree(part, shifted[part]);
  const folder = join(shell.env.HOME ?? homedir(), ".cache", "svc-tts", "run");
  const files = await prepareRunFiles({ folder, ports: shifted, now: shell.now() });
  shell.print(
    `==> starting mist (${shifted.mist}), arcana (${shifted.arcana}) and api (${shifted.api}); files in ${folder}`,
  );

  const stop = new AbortController();
  const signal = AbortSignal.any([shell.signal, stop.signal]);
  const children = parts.map((part) => startPart(shell, part, shifted[part], files));
  try {
    const died = Promise.race(children.map(async ({ part, exited }) => ({ part, how: await exited })));
    const told = tellWhenReady(shell, shifted, files, signal);
    const first = await Promise.race([died, onceAborted(shell.signal), told.then(() => died)]);
    if (first === undefined || shell.signal.aborted) return 0;
    shell.complain(`==> ${first.part} ended (${first.how}); its last words are above. Stopping the others.`);
    return 1;
  } finally {
    stop.abort();
    await stopParts(shell, children);
  }
}

interface RunningPart {
  readonly part: Part;
  readonly child: ChildProcess;
  /** How it ended: `code 1` or `SIGKILL`. */
  readonly exited: Promise<string>;
}

/** A process of its own, told to stop by a signal or by the loss of its parent (the closed channel). */
function startPart(shell: Shell, part: Part, port: number, files: RunFiles): RunningPart {
  const [runtime, ...rest] = shell.program;
  const watch = shell.env.DEV ? ["--watch", "--watch-preserve-output"] : [];
  const child = spawn(runtime, [...watch, ...rest, part], {
    env: partEnvironment(shell.env, port, files),
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const exited = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) => resolve(signal ?? `code ${code}`));
  });
  return { part, child, exited };
}

function partEnvironment(inherited: Environment, port: number, files: RunFiles): Environment {
  return {
    ...inherited,
    [names.host]: host,
    [names.port]: String(port),
    [names.logLevel]: inherited[names.logLevel] ?? "warn",
    [names.drainSeconds]: String(drainSeconds),
    [names.tokenDir]: files.tokenDir,
    [names.keysFile]: files.keysFile,
    [names.licenseFile]: files.licenseFile,
    [names.licenseKeysFile]: files.licenseKeysFile,
    [names.routingFile]: files.routingFile,
    [names.routingConfigMap]: "",
  };
}

async function stopParts(shell: Shell, children: readonly RunningPart[]): Promise<void> {
  const running = children.filter(({ child }) => child.exitCode === null && child.signalCode === null);
  if (running.length === 0) return;
  shell.print("==> stopping");
  for (const { child } of running) child.kill("SIGTERM");
  const kill = setTimeout(() => {
    for (const { child } of running) child.kill("SIGKILL");
  }, killAfterMs);
  await Promise.all(running.map(({ exited }) => exited));
  clearTimeout(kill);
  shell.print("==> stopped");
}

async function onceAborted(signal: AbortSignal): Promise<undefined> {
  if (!signal.aborted) await once(signal, "abort");
  return undefined;
}

async function requireFree(part: Part, port: number): Promise<void> {
  const server = createServer();
  try {
    server.listen(port, host);
    await once(server, "listening");
  } catch (cause) {
    throw new UsageError(
      `Port ${port}, which ${part} needs, is taken. Stop what listens there, or shift all ports: PORT_OFFSET=100 make run`,
      { cause },
    );
  } finally {
    server.close();
  }
}

async function tellWhenReady(shell: Shell, at: Ports, files: RunFiles, signal: AbortSignal): Promise<void> {
  const startedAt = performance.now();
  const waiting = new Set<Part>(parts);
  let toldAt = startedAt;
  while (waiting.size > 0 && !signal.aborted) {
    for (const part of waiting) {
      if (!(await isReady(part, at[part]))) continue;
      waiting.delete(part);
      shell.print(`    ${part} is ready (${seconds(startedAt)})`);
    }
    if (performance.now() - toldAt > 2000 && waiting.size > 0) {
      toldAt = performance.now();
      shell.print(`    waiting for ${[...waiting].join(", ")} (${seconds(startedAt)})`);
    }
    if (performance.now() - startedAt > readyWithinMs) {
      shell.complain(
        `    ${[...waiting].join(", ")} took too long; SVC_TTS_LOG_LEVEL=debug make run tells more`,
      );
      return;
    }
    await sleep(100);
  }
  if (!signal.aborted) shell.print(welcome(at.api, files.key));
}

async function isReady(part: Part, port: number): Promise<boolean> {
  const path = part === "api" ? "/health" : "/ready";
  try {
    const answer = await fetch(`http://${host}:${port}${path}`, { signal: AbortSignal.timeout(1000) });
    const text = await answer.text();
    return answer.ok && !text.includes('"modelReachable":false');
  } catch {
    return false; // not listening yet
  }
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}

function welcome(port: number, key: string): string {
  const url = `http://${host}:${port}`;
  const speaker = voices.find((voice) => voice.models.includes("arcana"))?.id ?? voices[0]?.id;
  const body = JSON.stringify({ speaker, text: "Hello! This machine can speak now." });
  return [
    "",
    "==> speaking. Try it in another terminal:",
    "",
    `curl -sS ${url}/v1/svc-tts -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -H 'Accept: audio/wav' -d '${body}' -o speech.wav`,
    "",
    `    voices: ${url}/v1/voices    models: ${url}/v1/models    health: ${url}/health`,
    "    Ctrl-C stops all three.",
    "",
  ].join("\n");
}
