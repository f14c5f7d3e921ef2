import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import type { RoutingTable } from "../../../config/contract/routing.ts";
import type { Voice } from "../../../config/contract/voices.ts";
import { systemClock } from "../../../lib/clock.ts";
import { createLicenseKeys, issueLicense, type LicenseOrder } from "../../../server/cli/license-files.ts";
import type { ApiSettings } from "../../../server/start/api-settings.ts";
import { type ApiEnvironment, type RunningApi, startApiTier } from "../../../server/start/api-tier.ts";
import { createKey, type Scope } from "../../../server/store/keys/key.ts";
import { toFileEntry } from "../../../server/store/keys/key-file.ts";
import { eventuallyOn, FakeClock } from "../fake-clock.ts";

const speechPath = "/v1/svc-tts";

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
  /** Invalid API keys, by the reason. */
  readonly otherKeys: { readonly expired: string; readonly unscoped: string };
  route(models: RoutingTable["models"], more?: Partial<RoutingTable>): void;
  license(terms: Partial<LicenseOrder>): Promise<void>;
  /** Sends a request with the valid API key. The default path is the route of the specification. */
  post(body: unknown, headers?: Record<string, string>, more?: PostOptions): Promise<Response>;
}

interface PostOptions {
  readonly path?: string;
  readonly signal?: AbortSignal | undefined;
}

/** Returns routes to these replicas with equal weights. */
export function routeTo(...urls: readonly string[]): NonNullable<RoutingTable["models"]["mist"]> {
  return urls.map((service, i) => ({ pool: `p${i}`, service, weight: 50, idle: false }));
}

function usualTerms(nowMs: number): LicenseOrder {
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

/**
 * Starts a complete API tier with temporary files on a free port of this machine.
 *
 * @param models the routes of each model, or the URL of one replica that serves all models
 */
export async function startTestApi(
  models: RoutingTable["models"] | string,
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
  const createdKeys = { good: createKey(), expired: createKey(), unscoped: createKey() };
  route(typeof models === "string" ? routesTo(models) : models);
  await license({});
  writeFileSync(file("jwks.json"), JSON.stringify(signer.publicKeys));
  writeFileSync(file("token"), "internal-token\n");
  writeFileSync(file("keys.yaml"), keysFile(createdKeys));
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
    // The drain limit is long, so that a pause of the machine does not reach it. Tests of the limit set a
    // shorter time.
    drainSeconds: 600,
    logLevel: "silent",
    voices: testVoices,
    ...settings,
    // Tests leave idle connections open, and a stop must not wait for them.
    timing: { keepAliveGraceMs: 0, idleCloseMs: 0, ...settings.timing },
  };
  const api = await startApiTier(all, environment);
  return {
    url: api.url,
    tlsUrl: api.tlsUrl,
    folder,
    key: createdKeys.good,
    otherKeys: createdKeys,
    route,
    license,
    post: (body, headers = {}, { path = speechPath, signal } = {}) =>
      fetch(`${api.url}${path}`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${createdKeys.good}`,
          "content-type": "application/json",
          ...headers,
        },
        body: typeof body === "string" ? body : JSON.stringify(body),
        ...(signal && { signal }),
      }),
    stop: async () => {
      await (clock instanceof FakeClock ? passUntil(clock, api.stop()) : api.stop());
      rmSync(folder, { recursive: true });
    },
  };
}

function routesTo(url: string): RoutingTable["models"] {
  const route = routeTo(url);
  return { mist: route, mistv2: route, arcana: route };
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

/** Advances the clock until the work has ended. */
async function passUntil<T>(clock: FakeClock, work: Promise<T>, stepMs = 100): Promise<T> {
  let isOver = false;
  const done = work.finally(() => {
    isOver = true;
  });
  await eventuallyOn(clock, "the work is done", () => isOver, stepMs);
  return done;
}

/** Returns the sum of the samples in /metrics with lines that start with this text. */
export async function sampleOf(url: string, line: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const found = text.split("\n").filter((candidate) => candidate.startsWith(line));
  return found.reduce((sum, sample) => sum + Number(sample.slice(sample.lastIndexOf(" "))), 0);
}

/** Returns whether a server refuses new connections. */
export function refusesConnections(url: string): Promise<boolean> {
  return fetch(`${url}/livez`).then(
    () => false,
    () => true,
  );
}

/** Returns the bytes of a request for speech that asks the server to close the connection. */
export function rawSpeech({ key }: { readonly key: string }, body: object, accept: string): string {
  const text = JSON.stringify(body);
  return (
    `POST ${speechPath} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\naccept: ${accept}\r\n` +
    `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`
  );
}

export interface RawAnswer {
  /** The received data. Each read from the socket is one entry. */
  readonly reads: readonly Buffer[];
  readonly text: string;
}

/**
 * Sends bytes on a plain socket, and collects the response until the server closes the connection.
 *
 * @param onRead called after each read
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
    socket.on("error", () => socket.destroy()); // A reset also closes the connection.
    socket.on("close", () => resolve({ reads, text: Buffer.concat(reads).toString("latin1") }));
  });
}
