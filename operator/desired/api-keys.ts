import { env, keysKey, paths } from "../../config/contract/names.ts";
import type { TtsDeployment } from "../observed.ts";
import { type Mounted, secretMount } from "./pod.ts";

/** Where the API tier has its keys from, and the dashboard, which changes those of a database. */

type Api = TtsDeployment["spec"]["api"];
type Postgres = NonNullable<NonNullable<Api["keys"]>["postgres"]>;

const sqliteFile = `${paths.database}/svc-tts.db`;
const passwordFile = "password";
const caFile = "ca.crt";
const setupFile = "token";

/** An SQLite file, which two nodes must not write at once. */
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
  };
}

/** A rule of the schema holds that a URL with an authority has one parameter already. */
function urlOf({ url, caSecretRef }: Postgres): string {
  return caSecretRef === undefined ? url : `${url}&sslrootcert=${paths.databaseCa}/${caFile}`;
}

/** Optional to the kubelet as far as a pod can start without: the database is tried again, and a setup text is soon done with. */
export function keyMounts({ keys, dashboard }: Api): Mounted[] {
  const { secretRef, sqlite, postgres } = keys ?? {};
  const setup = dashboard?.setupSecretRef;
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
  ];
}

/** Above what the server lets gather there (64 MiB). It outlives the container, not the pod. */
const spoolMount: Mounted = {
  volume: { name: "spool", emptyDir: { sizeLimit: "80Mi" } },
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

/** The Secrets of its users' without which it has no keys. */
export function keySecrets({ keys }: Api): string[] {
  return [keys?.secretRef?.name, keys?.postgres?.secretRef?.name].filter((name) => name !== undefined);
}
