import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, utimesSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ports } from "../../../config/contract/names.ts";
import { freeOffset } from "../../../tools/bench/common/running-server.ts";
import { eventually } from "../../support/eventually.ts";
import { folderOfTests } from "../../support/folder.ts";
import { rawRequest, rawSpeech } from "../../support/server/api-tier.ts";

const main = fileURLToPath(new URL("../../../server/main.ts", import.meta.url));
const folder = folderOfTests("run");
/** The offset of the ports of all tiers. */
let offset: number;
const sentence = "This machine can speak now";

let home: string;
let run: { child: ChildProcess; output: () => string; ended: Promise<number | null> };

beforeAll(async () => {
  offset = await freeOffset();
});

beforeEach(() => {
  home = mkdtempSync(join(folder, "home-"));
});

afterEach(async () => {
  run.child.kill("SIGKILL");
  await run.ended;
  await eventually("the end of all processes", () => ourProcesses().length === 0);
});

function start(environment: Record<string, string> = {}, ...options: readonly string[]): void {
  const child = spawn(process.execPath, [main, "all", ...options], {
    env: {
      ...process.env,
      HOME: home,
      XDG_DATA_HOME: "",
      PORT_OFFSET: String(offset),
      DEV: "",
      ...environment,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const pieces: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => pieces.push(piece));
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  run = { child, output: () => Buffer.concat(pieces).toString(), ended };
}

const portOf = (tier: keyof typeof ports) => ports[tier] + offset;

const ready = () =>
  eventually("the line that says that svc-tts is ready", () => run.output().includes("==> ready"), {
    seen: () => run.output(),
  });

/** Lists all processes of the tiers and engines: they have the folder of this test as HOME. */
function ourProcesses(): { pid: number; command: string }[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      try {
        readlinkSync(`/proc/${name}/exe`);
        const isOurs = readFileSync(`/proc/${name}/environ`, "utf8").split("\0").includes(`HOME=${home}`);
        return isOurs ? [{ pid: Number(name), command: readFileSync(`/proc/${name}/cmdline`, "utf8") }] : [];
      } catch {
        return []; // The process has ended, or its files are not readable.
      }
    });
}

/** Counts the established connections to a port of this machine in the kernel's table (proc(5)). */
function openConnections(port: number): number {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  const lines = readFileSync("/proc/net/tcp", "utf8").split("\n");
  return lines.filter(
    (line) => line.includes(`0100007F:${hex} `) && /^ *\d+: 0100007F:\S+ \S+ 01 /.test(line),
  ).length;
}

/** Returns the local addresses on which programs listen on a port. */
function listeningAddresses(port: number): string[] {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  const lines = readFileSync("/proc/net/tcp", "utf8").split("\n");
  return lines.flatMap((line) => new RegExp(`^ *\\d+: (\\S+):${hex} \\S+ 0A `).exec(line)?.[1] ?? []);
}

const curlLine = () => /^curl .*$/m.exec(run.output())?.[0] ?? "";

describe("svc-tts all", () => {
  it("prints a working curl command, accepts SVC_TTS_API_KEY, and stops all tiers at a signal", async () => {
    start({ SVC_TTS_API_KEY: "my-own-key-of-16" });
    await ready();
    for (const [key, status] of [
      ["my-own-key-of-16", 200],
      [readFileSync(join(home, ".local/share/svc-tts/run/key"), "utf8"), 200],
      ["another", 401],
    ] as const) {
      const request = rawSpeech({ key }, { speaker: "alan", text: "Good morning." }, "audio/pcm");
      const { text } = await rawRequest(`http://127.0.0.1:${portOf("api")}`, request);
      expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    }

    expect(curlLine()).toContain(sentence);
    await promisify(execFile)("bash", ["-c", curlLine()], { cwd: home });
    const wav = readFileSync(join(home, "speech.wav"));
    expect(wav.subarray(0, 4).toString()).toBe("RIFF");
    const seconds = (wav.length - 44) / 2 / wav.readUInt32LE(24);
    expect(seconds).toBeGreaterThan(1);
    expect(seconds).toBeLessThan(6);

    expect(openConnections(portOf("api"))).toBe(0); // An open connection would delay the stop.
    const files = join(home, ".local/share/svc-tts/run");
    expect(readdirSync(files).filter((name) => name.startsWith("routing"))).toHaveLength(1);

    run.child.kill("SIGTERM");
    expect(await run.ended).toBe(0);
    expect(ourProcesses()).toEqual([]);
    expect(readdirSync(files).filter((name) => name.startsWith("routing"))).toEqual([]);
  });

  it("listens on the loopback interface only, and with --all-interfaces with the API on every interface", async () => {
    const [loopback, every] = ["0100007F", "00000000"];
    const addresses = () =>
      (["api", "model", "arcanaBesideMist"] as const).flatMap((tier) => listeningAddresses(portOf(tier)));
    start();
    await ready();
    expect(addresses()).toEqual([loopback, loopback, loopback]);
    run.child.kill("SIGTERM");
    await run.ended;
    start({}, "--all-interfaces");
    await ready();
    expect(addresses()).toEqual([every, loopback, loopback]);
  });

  it("names the tier that died, stops the other tiers and fails", async () => {
    start();
    await ready();
    const arcana = ourProcesses().find(({ command }) => command.endsWith("\0arcana\0"));
    process.kill(arcana?.pid ?? 0, "SIGKILL");
    expect(await run.ended).toBe(1);
    expect(run.output()).toContain("arcana ended unexpectedly (SIGKILL)");
  });

  it("leaves no process behind when it is killed", async () => {
    start();
    await ready();
    run.child.kill("SIGKILL");
    await eventually("the end of the tiers", () => ourProcesses().length === 0);
  });

  it("restarts the tiers with DEV=1 when a file is saved, and leaves no process behind", async () => {
    start({ DEV: "1" });
    await ready();
    const pidOfApi = () => ourProcesses().find(({ command }) => command.endsWith("\0api\0"))?.pid;
    const before = pidOfApi();
    utimesSync(main, new Date(), new Date());
    await eventually("another process of the API", () => ![undefined, before].includes(pidOfApi()));
    run.child.kill("SIGKILL");
    await eventually("the end of the tiers", () => ourProcesses().length === 0);
  });

  it("names a port that is in use, and the variable that shifts all ports", async () => {
    const blockingServer = createServer();
    const port = portOf("model");
    await new Promise<void>((resolve) => blockingServer.listen(port, "127.0.0.1", resolve));
    start();
    expect(await run.ended).toBe(2);
    expect(run.output()).toContain(`Port ${port} of mist is in use.`);
    expect(run.output()).toContain("PORT_OFFSET=");
    await new Promise((resolve) => blockingServer.close(resolve));
  });
});
