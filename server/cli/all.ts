import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync, watch } from "node:fs";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { ModelKind } from "../../config/contract/models.ts";
import { env as names, ports } from "../../config/contract/names.ts";
import { voices } from "../../config/contract/voices.ts";
import { smallSemiSpace } from "../../lib/child-processes.ts";
import type { Command, OptionValues, Shell } from "../../lib/command-line.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { modelsFolder } from "../presets/installed.ts";
import { loadPreset, presetNames } from "../presets/preset.ts";
import { needsDigests } from "../presets/resolve.ts";
import { fetchInBackground } from "./background-fetch.ts";
import { prepareRunFiles, type RunFiles, runFolder } from "./run-files.ts";
import type { Environment } from "./settings/environment.ts";
import { readPortOffset } from "./settings/settings.ts";

type Part = "api" | ModelKind;
type Ports = Readonly<Record<Part, number>>;

const parts: readonly Part[] = ["mist", "arcana", "api"];
const host = "127.0.0.1";
/** Every IPv4 address of the machine or of the container. */
const allInterfaces = "0.0.0.0";
/** The longest time for which running streams may continue when the tiers are stopped. */
const drainSeconds = 5;
/** A tier that is still running this long after the stop signal is killed. */
const killAfterMs = (drainSeconds + 5) * 1000;
const readyWithinMs = 120_000;
const sourceFolders = ["../", "../../config/contract"].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
);
/** The delay between a change and the restart. Editors write a file in several steps. */
const settleMs = 300;

export const allCommand: Command = {
  name: "all",
  summary: "run the three tiers on this machine: API (port 8000), mist (8080), arcana (8090)",
  options: {
    fetch: {
      value: "MODEL",
      help: "install this model in the background, like `svc-tts models get MODEL`; its voices are available after the installation",
    },
    "all-interfaces": {
      help: "accept connections to the API from other machines, which a container needs; the model tiers stay local",
    },
  },
  notes: [
    "PORT_OFFSET=N shifts all three ports. DEV=1 restarts a tier when its files change.",
    "SVC_TTS_API_KEY=KEY is accepted as an additional key. SVC_TTS_LOG_LEVEL sets the log level of the tiers (default: warn).",
  ].join("\n"),
  run: runAll,
};

async function runAll(shell: Shell, options: OptionValues): Promise<number> {
  const { fetch: modelId } = options;
  const apiHost = options["all-interfaces"] ? allInterfaces : host;
  if (modelId !== undefined) requireFetchable(modelId);
  const offset = readPortOffset(shell.env);
  const shifted: Ports = {
    api: ports.api + offset,
    mist: ports.model + offset,
    arcana: ports.arcanaBesideMist + offset,
  };
  for (const part of parts) await requireFree(part, shifted[part]);
  const folder = runFolder(shell.env);
  const files = await prepareRunFiles({ folder, ports: shifted, now: shell.now() });
  shell.print(
    `==> starting mist (${shifted.mist}), arcana (${shifted.arcana}) and api (${shifted.api}); files in ${folder}`,
  );

  const stop = new AbortController();
  const signal = AbortSignal.any([shell.signal, stop.signal]);
  const running = parts.map(
    (part) =>
      new RunningPart(shell, part, {
        ...partEnvironment(shell.env, part, shifted[part], files),
        [names.host]: part === "api" ? apiHost : host,
      }),
  );
  const naturalVoice = { speaker: "af_heart", modelId: "mist", text: "Hello! This is a natural voice." };
  const example = curlCommand(shifted.api, files.key, naturalVoice, "heart.wav");
  const ready = reportReadiness(shell, shifted, files, signal);
  const fetching =
    modelId === undefined ? undefined : fetchInBackground(shell, { id: modelId, example, ready }, signal);
  const unwatch = shell.env.DEV === "1" ? restartOnSave(shell, running) : () => undefined;
  try {
    const died = Promise.race(
      running.map(async ({ part, died: reason }) => ({ part, reason: await reason })),
    );
    const first = await Promise.race([died, onceAborted(shell.signal), ready.then(() => died)]);
    if (first === undefined || shell.signal.aborted) return 0;
    shell.complain(
      `==> ${first.part} ended unexpectedly (${first.reason}); its last log lines are above. Stopping the other tiers.`,
    );
    return 1;
  } finally {
    unwatch();
    stop.abort();
    shell.print("==> stopping");
    await Promise.all([...running.map((part) => part.stop()), fetching]);
    // The routing table depends on the ports. The other files are kept for the next run.
    rmSync(files.routingFile, { force: true });
    shell.print("==> stopped");
  }
}

/**
 * Requires a model that `svc-tts models get` installs without further options: its license allows commercial use, and
 * all digests are known.
 */
function requireFetchable(modelId: string): void {
  const presets = presetNames().map(loadPreset);
  const names = presets
    .filter((preset) => preset.license.commercial && !needsDigests(preset))
    .map(({ id }) => id);
  if (!names.includes(modelId))
    throw new UsageError(`--fetch must be one of ${names.join(", ")}; it is ${modelId}.`);
}

/** A tier in a child process. The child stops on a signal, or when its channel closes because the parent has ended. */
class RunningPart {
  readonly part: Part;
  /**
   * This promise resolves with the reason of an unexpected end, such as `code 1` or `SIGKILL`. After `stop`,
   * the promise stays pending.
   */
  readonly died: Promise<string>;
  readonly #start: () => ChildProcess;
  readonly #reportEnd: (reason: string) => void;
  #child: ChildProcess;
  #exited: Promise<void>;
  #isStopping = false;

  constructor(shell: Shell, part: Part, environment: Environment) {
    const { promise, resolve } = Promise.withResolvers<string>();
    const [runtime, ...rest] = shell.program;
    this.part = part;
    this.died = promise;
    this.#reportEnd = resolve;
    this.#start = () =>
      spawn(runtime, [smallSemiSpace, ...rest, part], {
        env: environment,
        stdio: ["ignore", "inherit", "inherit", "ipc"],
      });
    this.#child = this.#start();
    this.#exited = this.#watch(this.#child);
  }

  async restart(): Promise<void> {
    await this.stop();
    this.#isStopping = false;
    this.#child = this.#start();
    this.#exited = this.#watch(this.#child);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    const child = this.#child;
    child.kill("SIGTERM");
    const kill = setTimeout(() => child.kill("SIGKILL"), killAfterMs);
    await this.#exited;
    clearTimeout(kill);
  }

  #watch(child: ChildProcess): Promise<void> {
    return new Promise((resolve) => {
      const end = (reason: string) => {
        if (!this.#isStopping) this.#reportEnd(reason);
        resolve();
      };
      child.once("error", (error) => end(error.message));
      child.once("exit", (code, signal) => end(signal ?? `code ${code}`));
    });
  }
}

/** Restarts the tiers when a source changes. @returns a function that stops watching. */
function restartOnSave(shell: Shell, running: readonly RunningPart[]): () => void {
  let pending: NodeJS.Timeout | undefined;
  let restarted: Promise<unknown> = Promise.resolve();
  const restart = () => {
    shell.print("==> a source file changed; restarting the tiers");
    restarted = restarted.then(() => Promise.all(running.map((part) => part.restart())));
  };
  const watchers = sourceFolders.map((folder) =>
    watch(folder, { recursive: true }, () => {
      clearTimeout(pending);
      pending = setTimeout(restart, settleMs);
    }),
  );
  return () => {
    clearTimeout(pending);
    for (const watcher of watchers) watcher.close();
  };
}

function partEnvironment(inherited: Environment, part: Part, port: number, files: RunFiles): Environment {
  return {
    ...inherited,
    ...(usesInstalledModels(part, inherited) && { [names.modelsDir]: modelsFolder(inherited) }),
    [names.port]: String(port),
    [names.logLevel]: inherited[names.logLevel] ?? "warn",
    [names.drainSeconds]: String(drainSeconds),
    [names.tokenDir]: files.tokenDir,
    [names.keysFile]: files.keysFile,
    [names.database]: inherited[names.database] || files.database,
    [names.dashboardUrl]: inherited[names.dashboardUrl] || `http://${host}:${port}`,
    [names.dashboardSetupFile]: inherited[names.dashboardSetupFile] || files.setupFile,
    [names.licenseFile]: files.licenseFile,
    [names.licenseKeysFile]: files.licenseKeysFile,
    [names.routingFile]: files.routingFile,
    [names.routingConfigMap]: "",
  };
}

/**
 * Returns whether the tier loads installed models. arcana loads installed models only if Kokoro is its
 * generator.
 */
function usesInstalledModels(part: Part, inherited: Environment): boolean {
  return part === "mist" || (part === "arcana" && inherited[names.arcanaGenerator] === "kokoro");
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
      `Port ${port} of ${part} is in use. Stop the program that uses the port, or shift all ports: PORT_OFFSET=100 make run`,
      { cause },
    );
  } finally {
    server.close();
  }
}

/** Prints which tiers are ready, and then how to use the server. @returns whether all tiers are ready. */
async function reportReadiness(
  shell: Shell,
  at: Ports,
  files: RunFiles,
  signal: AbortSignal,
): Promise<boolean> {
  const startedAt = performance.now();
  const waiting = new Set<Part>(parts);
  let printedAt = startedAt;
  while (waiting.size > 0 && !signal.aborted) {
    for (const part of waiting) {
      if (!(await isReady(part, at[part]))) continue;
      waiting.delete(part);
      shell.print(`    ${part} is ready (${seconds(startedAt)})`);
    }
    if (performance.now() - printedAt > 2000 && waiting.size > 0) {
      printedAt = performance.now();
      shell.print(`    waiting for ${[...waiting].join(", ")} (${seconds(startedAt)})`);
    }
    if (performance.now() - startedAt > readyWithinMs) {
      shell.complain(
        `    ${[...waiting].join(", ")} did not become ready in time. To log the cause, run: SVC_TTS_LOG_LEVEL=debug make run`,
      );
      return false;
    }
    await sleep(100);
  }
  if (signal.aborted) return false;
  shell.print(welcome(at.api, files.key, await dashboardLink(at.api, files.setupFile)));
  return true;
}

async function isReady(part: Part, port: number): Promise<boolean> {
  const path = part === "api" ? "/health" : "/ready";
  try {
    const response = await fetch(`http://${host}:${port}${path}`, {
      headers: { connection: "close" }, // A kept-alive connection would delay the stop of the tier.
      signal: AbortSignal.timeout(1000),
    });
    const text = await response.text();
    return response.ok && !text.includes('"modelReachable":false');
  } catch {
    return false; // The tier does not listen yet.
  }
}

/**
 * Returns the address of the dashboard. Before the first owner exists, the result is the link that creates
 * the owner.
 */
async function dashboardLink(port: number, setupFile: string): Promise<string> {
  const url = `http://${host}:${port}/dashboard`;
  const response = await fetch(`${url}/login`, { redirect: "manual", headers: { connection: "close" } });
  if (!response.headers.get("location")?.endsWith("/setup")) return url;
  return `${url}/setup?token=${readFileSync(setupFile, "utf8").trim()} (to create the first owner)`;
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}

function welcome(port: number, key: string, dashboard: string): string {
  const url = `http://${host}:${port}`;
  const speaker = voices.find((voice) => voice.models.includes("arcana"))?.id ?? voices[0]?.id;
  return [
    "",
    "==> ready. Try it in another terminal:",
    "",
    curlCommand(port, key, { speaker, text: "Hello! This machine can speak now." }, "speech.wav"),
    "",
    `    voices: ${url}/v1/voices    models: ${url}/v1/models    health: ${url}/health`,
    `    dashboard: ${dashboard}`,
    "    Ctrl-C stops all three tiers.",
    "",
  ].join("\n");
}

/** Returns a curl command that synthesizes the text of a request body into a WAV file. */
function curlCommand(port: number, key: string, body: object, file: string): string {
  return `curl -sS http://${host}:${port}/v1/svc-tts -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -H 'Accept: audio/wav' -d '${JSON.stringify(body)}' -o ${file}`;
}
