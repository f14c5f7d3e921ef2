import { env, keysKey, paths } from "../../../config/contract/names.ts";
import type { TtsDeployment } from "../../facts/observed.ts";
import { type Mounted, secretMount } from "./pod.ts";

/** The sources of the API keys for the API tier and the dashboard. */

type Api = TtsDeployment["spec"]["api"];
type Oidc = NonNullable<NonNullable<Api["dashboard"]>["oidc"]>;
type Postgres = NonNullable<NonNullable<Api["keys"]>["postgres"]>;

const sqliteFile = `${paths.database}/svc-tts.db`;
const passwordFile = "password";
const caFile = "ca.crt";
const setupFile = "token";
const clientSecretFile = "client-secret";

/** Whether only one pod may write the keys: two nodes must not write an SQLite file at the same time. */
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
 * The server requires an explicit sslmode. Older objects may have none, which means `disable`. The schema guarantees that a URL with
 * a CA has the parameter already.
 */
function urlOf({ url, caSecretRef }: Postgres): string {
  if (caSecretRef !== undefined) return `${url}&sslrootcert=${paths.databaseCa}/${caFile}`;
  return url.includes("?sslmode=") ? url : `${url}?sslmode=disable`;
}

/** Volumes are optional if a pod can start without them: the database is retried, and the setup token is needed only once. */
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

/** Larger than the most that the server stores there (128 MiB). The files survive a restart of the container, but not of the pod. */
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

/** The port of PostgreSQL, which the API pods may reach. */
export function databasePorts({ keys }: Api): number[] {
  const { url } = keys?.postgres ?? {};
  return url === undefined ? [] : [Number(new URL(url).port || 5432)];
}

/** The port of the provider by which users sign in. */
export function providerPorts({ dashboard }: Api): number[] {
  const { issuer } = dashboard?.oidc ?? {};
  return issuer === undefined ? [] : [Number(new URL(issuer).port || 443)];
}

/** The Secrets of users that contain the API keys or the password of their database. */
export function keySecrets({ keys }: Api): string[] {
  return [keys?.secretRef?.name, keys?.postgres?.secretRef?.name].filter((name) => name !== undefined);
}
