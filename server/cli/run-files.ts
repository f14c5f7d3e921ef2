import { randomBytes } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import type { JSONWebKeySet, JWK } from "jose";
import { stringify } from "yaml";
import { evaluateLicense } from "../../config/contract/license.ts";
import { type ModelId, type ModelKind, modelIds, models } from "../../config/contract/models.ts";
import { acceptedTokensKey, keysKey, tokenKey } from "../../config/contract/names.ts";
import type { Route, RoutingTable } from "../../config/contract/routing.ts";
import { createKey } from "../store/keys/key.ts";
import { toFileEntry } from "../store/keys/key-file.ts";
import { createLicenseKeys, issueLicense } from "./license-files.ts";
import { writePrivate } from "./private-file.ts";
import type { Environment } from "./settings/environment.ts";

/** The files of `svc-tts all`, which are kept between runs. */
export interface RunFiles {
  /** A development key with the scopes `tts:write` and `oov:read`. */
  readonly key: string;
  readonly keysFile: string;
  readonly database: string;
  /** The file with the token of the link that creates the first owner of the dashboard. */
  readonly setupFile: string;
  readonly tokenDir: string;
  readonly licenseFile: string;
  readonly licenseKeysFile: string;
  readonly routingFile: string;
}

export interface RunFilesOptions {
  readonly folder: string;
  readonly ports: Readonly<Record<ModelKind, number>>;
  /** The current time in milliseconds since the epoch. */
  readonly now: number;
}

/**
 * Returns the folder with the accounts, keys and words of `svc-tts all` (XDG Base Directory). Earlier
 * releases used the cache folder, which users may delete at any time, so the function moves a folder of an
 * earlier release.
 */
export function runFolder({ HOME = homedir(), XDG_DATA_HOME = "" }: Environment): string {
  const data = isAbsolute(XDG_DATA_HOME) ? XDG_DATA_HOME : join(HOME, ".local", "share");
  const folder = join(data, "svc-tts", "run");
  const former = join(HOME, ".cache", "svc-tts", "run");
  if (existsSync(folder) || !existsSync(former)) return folder;
  mkdirSync(dirname(folder), { recursive: true, mode: 0o700 });
  // A rename is atomic. The copy is needed because the folders may be on different disks.
  const draft = `${folder}.new`;
  cpSync(former, draft, { recursive: true, preserveTimestamps: true });
  renameSync(draft, folder);
  rmSync(former, { recursive: true });
  return folder;
}

const yearMs = 365 * 86_400_000;

/** Creates missing files: an API key, the internal token, a development license and the routing table. */
export async function prepareRunFiles({ folder, ports, now }: RunFilesOptions): Promise<RunFiles> {
  const at = (...names: string[]) => join(folder, ...names);
  const key = keep(at("key"), createKey);
  writePrivate(
    at(keysKey),
    stringify({ keys: [toFileEntry(key, { name: "development", scopes: ["tts:write", "oov:read"] })] }),
  );
  keep(at("dashboard-setup"), () => randomBytes(32).toString("base64url"));
  const token = keep(at("token", tokenKey), () => randomBytes(32).toString("base64url"));
  writePrivate(at("token", acceptedTokensKey), `${token}\n`);
  await licenseMachine(folder, now);
  const routingFile = at(`routing-${ports.mist}.json`);
  writePrivate(routingFile, JSON.stringify(routingTable(ports), null, 2));
  return {
    key,
    keysFile: at(keysKey),
    database: at("svc-tts.db"),
    setupFile: at("dashboard-setup"),
    tokenDir: at("token"),
    licenseFile: at("license.jwt"),
    licenseKeysFile: at("jwks.json"),
    routingFile,
  };
}

function keep(path: string, create: () => string): string {
  if (!existsSync(path)) writePrivate(path, create());
  return readFileSync(path, "utf8").trim();
}

/** Creates a development license if no valid license exists. Only the tiers of this command trust the license. */
async function licenseMachine(folder: string, now: number): Promise<void> {
  const [secret, shared, license] = ["private.jwk", "jwks.json", "license.jwt"].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  if ([secret, shared, license].every((path) => existsSync(path))) {
    const verdict = await evaluateLicense({
      token: readFileSync(license, "utf8"),
      keys: JSON.parse(readFileSync(shared, "utf8")) as JSONWebKeySet,
      now,
      gracePeriodSeconds: 0,
      failedAt: undefined,
    });
    if (verdict.state === "valid") return;
  }
  const keys = await createLicenseKeys();
  writePrivate(secret, JSON.stringify(keys.privateKey));
  writePrivate(shared, JSON.stringify(keys.publicKeys));
  writePrivate(license, await issueMachineLicense(keys.privateKey, now));
}

function issueMachineLicense(privateKey: JWK, now: number): Promise<string> {
  const terms = { licensee: "development on this machine", models: modelIds, maxGpus: 8, maxStreams: 64 };
  return issueLicense({ ...terms, graceDays: 0, notBefore: now - 60_000, expires: now + yearMs }, privateKey);
}

function routingTable(ports: Readonly<Record<ModelKind, number>>): RoutingTable {
  const route = (id: ModelId): Route => {
    const { tier } = models[id];
    return { pool: tier, service: `http://127.0.0.1:${ports[tier]}`, weight: 100, idle: false };
  };
  return {
    version: 1,
    profile: "self-hosted",
    models: Object.fromEntries(modelIds.map((id) => [id, [route(id)]])),
  };
}
