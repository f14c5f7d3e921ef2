import { env, keysKey, paths } from "../../../config/contract/names.ts";
import type { TtsDeployment } from "../../facts/observed.ts";
import { type Mounted, secretMount } from "./pod.ts";

/** The variables and volumes of the API container for API keys, the database and the dashboard. */

type Api = TtsDeployment["spec"]["api"];
type Oidc = NonNullable<NonNullable<Api["dashboard"]>["oidc"]>;
type Postgres = NonNullable<NonNullable<Api["keys"]>["postgres"]>;

const sqliteFile = `${paths.database}/svc-tts.db`;
const passwordFile = "password";
const caFile = "ca.crt";
const setupFile = "token";
const clientSecretFile = "client-secret";

/** Returns whether only one pod may run at a time, because two pods must not write the same SQLite file. */
export function hasOneWriter({ keys }: Api): boolean {
  return keys?.sqlite !== undefined;
}

export function keyVariables({ keys, dashboard }: Api): Record<string, string> {
  const { secretRef, sqlite, postgres } = keys ?? {};
  return {
    ...(secretRef && { [env.keysFile]: `${paths.keys}/${keysKey}` }),
    ...(sqlite && { [env.database]: sqliteFile }),
    ...(postgres && { [env.database]: urlOf(postgres), [env.spoolDir]: paths.spool }),
    ...(postgres?.secretRef && { [env.databasePasswordFile]: `${paths.databasePassword}/${passwordFile}` }),
    ...(dashboard && { [env.dashboardUrl]: dashboard.url }),
    ...(dashboard?.setupSecretRef && { [env.dashboardSetupFile]: `${paths.dashboardSetup}/${setupFile}` }),
    ...(dashboard?.oidc && oidcVariables(dashboard.oidc)),
  };
}

function oidcVariables(oidc: Oidc): Record<string, string> {
  const { issuer, clientId, clientSecretRef, caSecretRef, name, scopes, groupsClaim, groups } = oidc;
  return {
    [env.oidcIssuer]: issuer,
    [env.oidcClientId]: clientId,
    ...(clientSecretRef && { [env.oidcClientSecretFile]: `${paths.oidcClientSecret}/${clientSecretFile}` }),
    ...(caSecretRef && { [env.oidcCaFile]: `${paths.oidcCa}/${caFile}` }),
    ...(name !== undefined && { [env.oidcName]: name }),
    ...(scopes && { [env.oidcScopes]: [...new Set(["openid", ...scopes])].join(" ") }),
    ...(groupsClaim !== undefined && { [env.oidcGroupsClaim]: groupsClaim }),
    ...(groups.length > 0 && { [env.oidcGroups]: JSON.stringify(groups) }),
  };
}

/**
 * Returns the URL of the database with an explicit sslmode, which the server requires. The URL of an older
 * object may have no sslmode, which means `disable`. The schema requires the parameter in a URL with a CA.
 */
function urlOf({ url, caSecretRef }: Postgres): string {
  if (caSecretRef !== undefined) return `${url}&sslrootcert=${paths.databaseCa}/${caFile}`;
  return url.includes("?sslmode=") ? url : `${url}?sslmode=disable`;
}

/**
 * Returns the volumes. A volume is optional if a pod can start without it: the server retries the database,
 * and needs the setup token only once.
 */
export function keyMounts({ keys, dashboard }: Api): Mounted[] {
  const { secretRef, sqlite, postgres } = keys ?? {};
  const setup = dashboard?.setupSecretRef;
  const { clientSecretRef, caSecretRef } = dashboard?.oidc ?? {};
  return [
    ...(secretRef ? [secretMount("keys", paths.keys, { secretName: secretRef.name, optional: true })] : []),
    ...(sqlite ? [databaseMount(sqlite.persistentVolumeClaim.claimName)] : []),
    ...(postgres ? [spoolMount] : []),
    ...(postgres?.secretRef
      ? [oneKey("database-password", paths.databasePassword, postgres.secretRef, passwordFile, true)]
      : []),
    ...(postgres?.caSecretRef
      ? [oneKey("database-ca", paths.databaseCa, postgres.caSecretRef, caFile, false)]
      : []),
    ...(setup ? [oneKey("dashboard-setup", paths.dashboardSetup, setup, setupFile, true)] : []),
    ...(clientSecretRef
      ? [oneKey("oidc", paths.oidcClientSecret, clientSecretRef, clientSecretFile, true)]
      : []),
    ...(caSecretRef ? [oneKey("oidc-ca", paths.oidcCa, caSecretRef, caFile, true)] : []),
  ];
}

/**
 * The volume of the spool. The volume is larger than the server's limit of 128 MiB for the files of the
 * spool. The files survive a restart of the container, but Kubernetes deletes them with the pod.
 */
const spoolMount: Mounted = {
  volume: { name: "spool", emptyDir: { sizeLimit: "144Mi" } },
  mount: { name: "spool", mountPath: paths.spool },
};

function databaseMount(claimName: string): Mounted {
  return {
    volume: { name: "database", persistentVolumeClaim: { claimName } },
    mount: { name: "database", mountPath: paths.database },
  };
}

function oneKey(
  volume: string,
  mountPath: string,
  { name, key }: { name: string; key: string },
  path: string,
  optional: boolean,
): Mounted {
  const items = [{ key, path }];
  return secretMount(volume, mountPath, { secretName: name, ...(optional && { optional }), items });
}

/** Returns the port of PostgreSQL, to which API pods may connect. */
export function databasePorts({ keys }: Api): number[] {
  const { url } = keys?.postgres ?? {};
  return url === undefined ? [] : [Number(new URL(url).port || 5432)];
}

/** Returns the port of the OpenID Connect provider, to which API pods may connect. */
export function providerPorts({ dashboard }: Api): number[] {
  const { issuer } = dashboard?.oidc ?? {};
  return issuer === undefined ? [] : [Number(new URL(issuer).port || 443)];
}

/** Returns the names of the Secrets with API keys or with the password of the database. */
export function keySecrets({ keys }: Api): string[] {
  return [keys?.secretRef?.name, keys?.postgres?.secretRef?.name].filter((name) => name !== undefined);
}
