import { readFileSync } from "node:fs";
import type { JSONWebKeySet } from "jose";
import { requiresLicense } from "../../config/contract/license.ts";
import type { RoutingTable } from "../../config/contract/routing.ts";
import { createIssuerClient } from "../api/access/issuer-client.ts";
import { type CheckOptions, createLicenseCheck, type LicenseCheck } from "../api/access/license-check.ts";
import { createLicenseGate, type LicenseGate } from "../api/access/license-gate.ts";
import type { ReplicaDirectory } from "../api/upstream/replicas.ts";
import type { Files } from "./api-files.ts";
import type { ApiSettings, LicenseCheckSettings } from "./api-settings.ts";

/** The longest wait for a response of the license issuer. */
const issuerWithinMs = 10_000;

export interface ApiLicense {
  readonly license: LicenseGate;
  /** The online check. The value is undefined if the check is off. */
  readonly check: LicenseCheck | undefined;
}

interface LicenseEnvironment extends Pick<CheckOptions, "clock" | "random" | "log" | "onResult"> {
  readonly files: Files;
  readonly directory: ReplicaDirectory;
  readonly intervalMs: number;
}

/**
 * Evaluates the license at the start, and after each change of the license file, the keys file, the routing
 * table or the issuer's response.
 */
export async function openLicense(
  settings: ApiSettings,
  { files, directory, intervalMs, clock, random, log, onResult }: LicenseEnvironment,
): Promise<ApiLicense> {
  const check = createCheck(settings.licenseCheck, {
    licenseId: () => license.verdict().claims?.jti,
    keys: () => files.licenseKeys?.current(),
    kept: () => directory.table()?.licenseCheck,
    onNews: () => evaluateAgain(),
    onResult,
    clock,
    random,
    log,
  });
  const license: LicenseGate = await createLicenseGate({
    required: () => isRequired(directory.table(), files.licenseKeys?.current()),
    check: () => check?.facts(),
    token: () => files.license?.current(),
    keys: () => files.licenseKeys?.current(),
    gracePeriodSeconds: settings.licenseGraceSeconds,
    failedAt: () => parseTime(directory.table()?.licenseFailedAt),
    lastLicense: () => directory.table()?.lastLicense,
    clock,
    intervalMs,
    log,
  });
  const evaluateAgain = () => {
    license
      .refresh()
      .catch((error: unknown) =>
        log.error({ err: error }, "the license could not be evaluated; the last evaluation stays in use"),
      );
  };
  for (const source of [directory, files.license, files.licenseKeys]) source?.onChange(evaluateAgain);
  directory.onChange(() => void check?.adopt());
  return { license, check };
}

function createCheck(
  settings: LicenseCheckSettings | undefined,
  options: Omit<CheckOptions, "issuer" | "intervalSeconds">,
): LicenseCheck | undefined {
  if (settings === undefined) return undefined;
  const { endpoint, intervalSeconds, caFile } = settings;
  const authority = caFile === undefined ? undefined : readFileSync(caFile, "utf8");
  const issuer = createIssuerClient({ endpoint, authority, withinMs: issuerWithinMs, clock: options.clock });
  return createLicenseCheck({ ...options, issuer, intervalSeconds });
}

/**
 * A license is required if the routing table or the mounted license keys require one. The routing table alone
 * is not sufficient: a `podTemplate` could direct the pod to the routing table of another API server, but a
 * `podTemplate` cannot replace the mounted keys.
 */
function isRequired(table: RoutingTable | undefined, keys: JSONWebKeySet | undefined): boolean {
  return table?.licenseRequired !== false || (keys !== undefined && requiresLicense(keys));
}

function parseTime(text: string | undefined): number | undefined {
  const time = Date.parse(text ?? "");
  return Number.isNaN(time) ? undefined : time;
}
