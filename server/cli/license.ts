import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { JSONWebKeySet, JWK } from "jose";
import { evaluateLicense } from "../../config/contract/license.ts";
import { modelIds } from "../../config/contract/models.ts";
import type { Command, OptionValues } from "../../lib/command-line.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { createLicenseKeys, issueLicense, type LicenseOrder } from "./license-files.ts";
import { writePrivate } from "./private-file.ts";

const dayMs = 86_400_000;

const keygen: Command = {
  name: "license keygen",
  summary: "create a key pair that signs licenses: private.jwk and jwks.json",
  options: { out: { value: "FOLDER", help: "folder for both files", default: "." } },
  async run(shell, { out = "." }) {
    const [secret, shared] = [join(out, "private.jwk"), join(out, "jwks.json")];
    if (existsSync(secret))
      throw new UsageError(`${secret} already exists; move it away or choose another --out.`);
    const { privateKey, publicKeys } = await createLicenseKeys();
    writePrivate(secret, `${JSON.stringify(privateKey, null, 2)}\n`);
    writePrivate(shared, `${JSON.stringify(publicKeys, null, 2)}\n`);
    shell.print(
      `${secret}  private key that signs licenses; keep this file secret\n${shared}  public keys for operators and servers`,
    );
    return 0;
  },
};

const issue: Command = {
  name: "license issue",
  summary: "sign a license (compact JWS) and print it",
  options: {
    key: { value: "PATH", help: "the private.jwk that signs the license", required: true },
    licensee: { value: "NAME", help: "the organization that may use the license", required: true },
    models: { value: "LIST", help: "allowed models, separated by commas", default: modelIds.join(",") },
    "max-gpus": { value: "N", help: "maximum number of GPUs", default: "8" },
    "max-streams": { value: "N", help: "maximum number of concurrent streams", default: "256" },
    days: { value: "DAYS", help: "validity in days", default: "365" },
    "grace-days": { value: "DAYS", help: "grace period in days after the expiry", default: "7" },
  },
  async run(shell, options) {
    const terms = readTerms(options, shell.now());
    shell.print(await issueLicense(terms, readPrivateKey(options.key ?? "")));
    return 0;
  },
};

const inspect: Command = {
  name: "license inspect",
  summary: "print what a license allows, and whether it is valid now",
  options: {
    license: { value: "PATH", help: "the license file", required: true },
    jwks: { value: "PATH", help: "the trusted public keys", required: true },
  },
  async run(shell, { license = "", jwks = "" }) {
    const verdict = await evaluateLicense({
      token: readText(license, "--license"),
      keys: readJson(jwks, "--jwks") as JSONWebKeySet,
      now: shell.now(),
      gracePeriodSeconds: Number.MAX_SAFE_INTEGER / 1000,
      failedAt: undefined,
    });
    shell.print(JSON.stringify(verdict, null, 2));
    return verdict.state === "valid" || verdict.state === "grace" ? 0 : 1;
  },
};

export const licenseCommands: readonly Command[] = [keygen, issue, inspect];

function readTerms(options: OptionValues, now: number): LicenseOrder {
  const models = (options.models ?? "").split(",").map((model) => model.trim());
  const unknown = models.find((model) => !modelIds.some((id) => id === model));
  if (unknown !== undefined) {
    throw new UsageError(
      `--models must contain only ${modelIds.join(", ")}; ${JSON.stringify(unknown)} is not a model.`,
    );
  }
  return {
    licensee: options.licensee ?? "",
    models,
    maxGpus: readCount(options, "max-gpus", 0),
    maxStreams: readCount(options, "max-streams", 1),
    graceDays: readCount(options, "grace-days", 0),
    notBefore: now,
    expires: now + readCount(options, "days", 1) * dayMs,
  };
}

function readCount(options: OptionValues, flag: string, least: number): number {
  const value = Number(options[flag]);
  if (Number.isInteger(value) && value >= least && value <= 1_000_000) return value;
  throw new UsageError(
    `--${flag} must be an integer from ${least} to 1000000; it is ${JSON.stringify(options[flag])}.`,
  );
}

function readPrivateKey(path: string): JWK {
  const key = readJson(path, "--key") as (JWK & Partial<JSONWebKeySet>) | null;
  if (key?.keys !== undefined || (key?.kty === "OKP" && key.d === undefined)) {
    throw new UsageError(`--key names ${path}, which contains only public keys; use private.jwk.`);
  }
  if (key?.kty !== "OKP" || key.crv !== "Ed25519") {
    throw new UsageError(
      `--key names ${path}, which contains no Ed25519 key; create a key with \`svc-tts license keygen\`.`,
    );
  }
  return key;
}

function readText(path: string, flag: string): string {
  if (!existsSync(path)) throw new UsageError(`${flag} names ${path}, which does not exist.`);
  return readFileSync(path, "utf8");
}

function readJson(path: string, flag: string): unknown {
  try {
    return JSON.parse(readText(path, flag));
  } catch (cause) {
    if (cause instanceof UsageError) throw cause;
    throw new UsageError(
      `${flag} names ${path}, which is not JSON; create the file with \`svc-tts license keygen\`.`,
    );
  }
}
