import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { imageNodeOptions } from "../../support/image-options.ts";

/** Away from a `make run` that someone has open, and from other tests' own. */
const offset = 23_500;
const megabyte = 1024 * 1024;
const main = fileURLToPath(new URL("../../../server/main.ts", import.meta.url));

let home: string;
let all: ChildProcess;

/** Each tier as the process of its own that it is in a container. */
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "svc-tts-memory-"));
  const env = {
    ...process.env,
    HOME: home,
    PORT_OFFSET: String(offset),
    DEV: "",
    NODE_OPTIONS: imageNodeOptions(),
    SVC_TTS_ARCANA_GENERATOR: "flite", // the quicker one: half an hour of speech passes through the tiers
  };
  all = spawn(process.execPath, [main, "all"], { env, stdio: ["ignore", "pipe", "inherit"] });
  const said: Buffer[] = [];
  all.stdout?.on("data", (piece: Buffer) => said.push(piece));
  const speaks = () => {
    if (all.exitCode !== null) throw new Error(`it ended with ${all.exitCode}`);
    return Buffer.concat(said).includes("==> speaking");
  };
  await eventually("it speaks", speaks);
});

afterAll(async () => {
  if (all.exitCode === null) {
    const ended = new Promise((resolve) => all.once("exit", resolve));
    all.kill("SIGTERM");
    await ended;
  }
  rmSync(home, { recursive: true });
});

interface Held {
  readonly api: number;
  /** Its engines included. */
  readonly arcana: number;
}

/** Bytes that each tier holds of the machine's memory. */
function held(): Held {
  const processes = readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? readProcess(name) : []));
  const childrenOf = (parent: number | undefined) => processes.filter((each) => each.parent === parent);
  const tier = (part: string) => {
    const [own] = childrenOf(all.pid).filter(({ command }) => command.endsWith(`\0${part}\0`));
    const family = own ? [own, ...childrenOf(own.pid)] : [];
    return family.reduce((sum, { bytes }) => sum + bytes, 0);
  };
  return { api: tier("api"), arcana: tier("arcana") };
}

function readProcess(pid: string) {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const number = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? 0);
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
    return [{ pid: Number(pid), parent: number("PPid"), bytes: number("VmRSS") * 1024, command }];
  } catch {
    return []; // it ended meanwhile
  }
}

it("a megabyte of text streams, and no tier holds more for it as it goes", async () => {
  const text = "It was a long story, and it was not over yet. ".repeat(megabyte / 46);
  const hangUp = new AbortController();
  const answer = await fetch(`http://127.0.0.1:${8000 + offset}/v1/svc-tts`, {
    method: "POST",
    signal: hangUp.signal,
    headers: {
      authorization: `Bearer ${readFileSync(join(home, ".cache/svc-tts/run/key"), "utf8")}`,
      "content-type": "application/json",
      accept: "audio/wav",
    },
    body: JSON.stringify({ speaker: "eucalyptus", samplingRate: 16_000, text }), // Flite's quickest voice, at its own rate
  });
  expect(answer.status).toBe(200);
  let received = 0;
  let early: Held | undefined;
  let most: Held = { api: 0, arcana: 0 };
  let lookedAt = 0;
  for await (const piece of answer.body as unknown as AsyncIterable<Uint8Array>) {
    received += piece.length;
    if (received - lookedAt < megabyte) continue;
    lookedAt = received;
    const now = held();
    if (received > 24 * megabyte) early ??= now; // by then compilers and collectors have settled
    most = { api: Math.max(most.api, now.api), arcana: Math.max(most.arcana, now.arcana) };
    if (received > 64 * megabyte) break;
  }
  hangUp.abort();
  const grown = (tier: keyof Held) => (most[tier] - (early?.[tier] ?? 0)) / megabyte;
  expect(early?.api).toBeGreaterThan(20 * megabyte);
  expect(early?.arcana).toBeGreaterThan(20 * megabyte);
  expect(grown("api")).toBeLessThan(25); // of 40 that went through it
  expect(grown("arcana")).toBeLessThan(25);
});
