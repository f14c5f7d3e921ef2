import { readFile } from "node:fs/promises";
import type { Agent } from "node:https";
import type { SecureContextOptions } from "node:tls";
import { type Clock, systemClock } from "../../lib/clock.ts";

/** The headers and certificates of a request. Never log them. */
export type Credentials = {
  headers: Record<string, string>;
  tls: Pick<SecureContextOptions, "ca" | "cert" | "key" | "passphrase"> & {
    servername?: string;
    rejectUnauthorized?: boolean;
  };
  /**
   * The agent for the proxy of the kubeconfig, if it has one. The agent replaces the client's own sockets.
   */
  agent?: Agent;
};

/** The address of the API server, and the operator's credentials. */
export type Connection = {
  server: URL;
  /** The namespace of the service account or of the kubeconfig's context. */
  namespace: string | undefined;
  credentials(): Promise<Credentials>;
  /**
   * Reads the credentials again. It is called after a 401, because the token or the kubeconfig may have
   * changed.
   */
  refresh(): void;
};

/** The sources of the connection, which `main.ts` reads from the environment. */
export type ConnectOptions = {
  /** Path of a kubeconfig. It has priority over the service account. */
  kubeconfig?: string | undefined;
  context?: string | undefined;
  /** `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT`. */
  serviceHost?: string | undefined;
  servicePort?: string | undefined;
  serviceAccountFolder?: string | undefined;
  clock?: Clock;
};

const defaultServiceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount";
/**
 * The time after which the credentials are read again, as in client-go. The kubelet replaces a token long
 * before it expires.
 */
const rereadMs = 60_000;

/**
 * Connects with the kubeconfig if one is set, and otherwise with the service account of the pod. Throws an
 * error that names the missing setting.
 */
export async function connect(options: ConnectOptions): Promise<Connection> {
  if (options.kubeconfig !== undefined) return connectByKubeconfig(options.kubeconfig, options);
  if (options.serviceHost !== undefined) return connectByServiceAccount(options);
  throw new Error(
    "no cluster is configured: set KUBECONFIG to a kubeconfig file, or run in a pod with a service account",
  );
}

/**
 * Connects with the host, CA and token of the pod. It does not use the client library, which needs 90 MB of
 * memory.
 */
async function connectByServiceAccount(options: ConnectOptions): Promise<Connection> {
  const folder = options.serviceAccountFolder ?? defaultServiceAccountFolder;
  const host = options.serviceHost ?? "";
  const server = new URL(
    `https://${host.includes(":") ? `[${host}]` : host}:${options.servicePort ?? "443"}`,
  );
  const namespace = await readServiceAccount(folder, "namespace");
  const remembered = remember(async () => {
    const [ca, token] = await Promise.all([
      readServiceAccount(folder, "ca.crt"),
      readServiceAccount(folder, "token"),
    ]);
    return { headers: { authorization: `Bearer ${token}` }, tls: { ca } };
  }, options.clock);
  return { server, namespace, ...remembered };
}

async function readServiceAccount(folder: string, file: string): Promise<string> {
  try {
    return (await readFile(`${folder}/${file}`, "utf8")).trim();
  } catch (cause) {
    throw new Error(
      `cannot read the pod's service account (${folder}/${file}): set automountServiceAccountToken to true`,
      {
        cause,
      },
    );
  }
}

async function connectByKubeconfig(path: string, { context, clock }: ConnectOptions): Promise<Connection> {
  const { KubeConfig } = await import("@kubernetes/client-node");
  const load = () => {
    const config = new KubeConfig();
    config.loadFromFile(path);
    if (context !== undefined) config.setCurrentContext(context);
    return config;
  };
  let config = load();
  const cluster = config.getCurrentCluster();
  if (cluster === null)
    throw new Error(
      `kubeconfig ${path} has no cluster for context ${config.getCurrentContext()}; select another context, or add the cluster`,
    );
  const remembered = remember(async () => {
    const requestOptions: Record<string, unknown> = {};
    await config.applyToHTTPSOptions(requestOptions);
    return credentialsOf(requestOptions, cluster.proxyUrl !== undefined);
  }, clock);
  const refresh = () => {
    config = load();
    remembered.refresh();
  };
  return {
    server: new URL(cluster.server),
    namespace: config.getContextObject(config.getCurrentContext())?.namespace,
    credentials: remembered.credentials,
    refresh,
  };
}

/** Reads the credentials from the Node request options that the library filled. */
function credentialsOf(options: Record<string, unknown>, proxied: boolean): Credentials {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries((options.headers ?? {}) as Record<string, string>)) {
    headers[name.toLowerCase()] = String(value).trim();
  }
  if (typeof options.auth === "string") {
    headers.authorization = `Basic ${Buffer.from(options.auth).toString("base64")}`;
  }
  const tls: Record<string, unknown> = {};
  for (const name of ["ca", "cert", "key", "passphrase", "servername", "rejectUnauthorized"]) {
    if (options[name] !== undefined) tls[name] = options[name];
  }
  const credentials: Credentials = { headers, tls };
  if (proxied) credentials.agent = options.agent as Agent;
  return credentials;
}

/** Caches the credentials for a minute. Concurrent requests read the credentials only once. */
function remember(
  read: () => Promise<Credentials>,
  clock: Clock = systemClock,
): Pick<Connection, "credentials" | "refresh"> {
  let known: { at: number; value: Promise<Credentials> } | undefined;
  return {
    credentials() {
      if (known === undefined || clock.monotonicMs() - known.at > rereadMs) {
        const value = read();
        known = { at: clock.monotonicMs(), value };
        value.catch(() => {
          known = undefined;
        });
      }
      return known.value;
    },
    refresh() {
      known = undefined;
    },
  };
}
