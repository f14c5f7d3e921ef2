import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import type { RoutingTable } from "../../config/contract/routing.ts";
import type { Voice } from "../../config/contract/voices.ts";
import type { ApiSettings } from "../../server/api/settings.ts";
import { type ApiEnvironment, type RunningApi, startApiTier } from "../../server/api/start.ts";
import { systemClock } from "../../server/clock.ts";
import { createLicenseKeys, issueLicense, type LicenseTerms } from "../../server/license-files.ts";
import { createKey, type Scope } from "../../server/store/key.ts";
import { toFileEntry } from "../../server/store/key-file.ts";
import { eventuallyOn, FakeClock } from "./fake-clock.ts";

const testVoices: readonly Voice[] = [
  {
    id: "luna",
    models: ["arcana"],
    language: "eng",
    gender: "female",
    engine: { kind: "flite", voice: "slt", pitch: 1, formants: 1, stretch: 1 },
    license: "test",
  },
  {
    id: "abbie",
    models: ["mist", "mistv2"],
    language: "eng",
    gender: "female",
    engine: { kind: "flite", voice: "awb", pitch: 1, formants: 1, stretch: 1 },
    license: "test",
  },
];

export interface TestApi extends RunningApi {
  readonly folder: string;
  readonly key: string;
  /** Keys of other kinds, by what is wrong with them. */
  readonly otherKeys: { readonly expired: string; readonly unscoped: string };
  route(models: RoutingTable["models"], more?: Partial<RoutingTable>): void;
  license(terms: Partial<LicenseTerms>): Promise<void>;
  /** @param path another route than that of the specification. */
  post(body: unknown, headers?: Record<string, string>, path?: string): Promise<Response>;
}

function usualTerms(nowMs: number): LicenseTerms {
  return {
    licensee: "test",
    models: ["mist", "mistv2", "arcana"],
    maxGpus: 1,
    maxStreams: 8,
    graceDays: 1,
    notBefore: nowMs - 60_000,
    expires: nowMs + 3_600_000,
  };
}

/** A whole API tier with files of its own, on a free port of this machine. */
export async function startTestApi(
  models: RoutingTable["models"],
  settings: Partial<ApiSettings> = {},
  environment: ApiEnvironment = {},
): Promise<TestApi> {
  const { clock = systemClock } = environment;
  const folder = mkdtempSync(join(tmpdir(), "svc-tts-api-"));
  const file = (name: string) => join(folder, name);
  const route: TestApi["route"] = (routes, more = {}) => {
    const table: RoutingTable = { version: 1, profile: "self-hosted", models: routes, ...more };
    writeFileSync(file("routing.json"), JSON.stringify(table));
  };
  const signer = await createLicenseKeys();
  const license: TestApi["license"] = async (terms) => {
    writeFileSync(
      file("license"),
      await issueLicense({ ...usualTerms(clock.nowMs()), ...terms }, signer.privateKey),
    );
  };
  const made = { good: createKey(), expired: createKey(), unscoped: createKey() };
  route(models);
  await license({});
  writeFileSync(file("jwks.json"), JSON.stringify(signer.publicKeys));
  writeFileSync(file("token"), "internal-token\n");
  writeFileSync(file("keys.yaml"), keysFile(made));
  const all: ApiSettings = {
    host: "127.0.0.1",
    port: 0,
    routing: { kind: "file", path: file("routing.json") },
    tokenFile: file("token"),
    licenseFile: file("license"),
    licenseKeysFile: file("jwks.json"),
    licenseGraceSeconds: 0,
    keysFile: file("keys.yaml"),
    apiKey: undefined,
    database: undefined,
    keysStaleSeconds: 3600,
    keyLimits: {},
    valkey: undefined,
    drainSeconds: 5,
    logLevel: "silent",
    voices: testVoices,
    ...settings,
    // tests leave idle connections behind and should not wait for them
    timing: { farewellMs: 0, lastPauseMs: 0, ...settings.timing },
  };
  const api = await startApiTier(all, environment);
  return {
    url: api.url,
    folder,
    key: made.good,
    otherKeys: made,
    route,
    license,
    post: (body, headers = {}, path = "/v1/svc-tts") =>
      fetch(`${api.url}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${made.good}`, "content-type": "application/json", ...headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
    stop: async () => {
      await (clock instanceof FakeClock ? passUntil(clock, api.stop()) : api.stop());
      rmSync(folder, { recursive: true });
    },
  };
}

function keysFile(keys: { good: string; expired: string; unscoped: string }): string {
  const all: readonly Scope[] = ["tts:write"];
  return stringify({
    keys: [
      toFileEntry(keys.good, { name: "good", scopes: [...all, "oov:read"] }),
      toFileEntry(keys.expired, { name: "expired", scopes: all, expiresAt: 1000 }),
      toFileEntry(keys.unscoped, { name: "unscoped", scopes: ["oov:read"] }),
    ],
  });
}

/** Moves the clock until the work is done that waits for it. */
async function passUntil<T>(clock: FakeClock, work: Promise<T>, stepMs = 100): Promise<T> {
  let isOver = false;
  const done = work.finally(() => {
    isOver = true;
  });
  await eventuallyOn(clock, "the work is done", () => isOver, stepMs);
  return done;
}

export interface RawAnswer {
  /** As the socket gave them, read by read. */
  readonly reads: readonly Buffer[];
  readonly text: string;
}

/**
 * Sends bytes on a bare socket and gathers what comes until the other side closes.
 * @param onRead called after each read.
 */
export function rawRequest(url: string, bytes: string, onRead = (): void => undefined): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const reads: Buffer[] = [];
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    socket.on("data", (data) => {
      reads.push(data);
      onRead();
    });
    socket.on("error", () => socket.destroy()); // a reset is one way to close
    socket.on("close", () => resolve({ reads, text: Buffer.concat(reads).toString("latin1") }));
  });
}
