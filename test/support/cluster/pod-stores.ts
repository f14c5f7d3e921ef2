/** Runs PostgreSQL and Valkey in pods of the local cluster. The image contains the programs of Debian. */
import { execFile } from "node:child_process";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { selfSigned } from "../certificate.ts";
import { postgresPrograms } from "../server/postgres.ts";
import { valkeyProgram } from "../server/valkey.ts";
import { giveNodeImage } from "./node-images.ts";
import type { Kubectl } from "./real-cluster.ts";

export interface PodPostgres {
  /**
   * The value of `spec.api.keys.postgres`. It uses TLS, and Secrets for the password and the certificate
   * authority.
   */
  readonly keys: object;
  /** Creates an empty database. Resolves when the database accepts queries. */
  start(): Promise<void>;
  /** Kills the pod and all its connections. Resolves when the pod no longer exists. */
  kill(): Promise<void>;
  /** Starts another pod with the same data. Resolves when the database accepts queries. */
  restart(): Promise<void>;
  /** Pauses the process. Connections are accepted, but get no response until `goOn`. */
  hang(): Promise<void>;
  goOn(): Promise<void>;
  /** Deletes the PersistentVolume and its folder, which remain when the namespace is deleted. */
  remove(): Promise<void>;
}

const image = "svc-tts.local/stores:1";
const owner = "tts";
const password = "correct horse/battery@staple";

export function podPostgres(kubectl: Kubectl, name: string): PodPostgres {
  const folder = mkdtempSync(join(tmpdir(), "svc-tts-pod-postgres-"));
  const [passwordSecret, caSecret, tlsSecret] = [`${name}-password`, `${name}-ca`, `${name}-tls`];
  const signal = async (which: "STOP" | "CONT") =>
    void (await kubectl.exec(name, "/bin/sh", "-c", `kill -${which} -1`));
  const begin = async () => {
    const programs = await postgresPrograms();
    await kubectl.apply(postgresPod({ name, programs, passwordSecret, tlsSecret }));
    await ready(kubectl, name);
  };
  return {
    keys: {
      url: `postgres://${owner}@${name}:5432/postgres?sslmode=verify-full`,
      secretRef: { name: passwordSecret },
      caSecretRef: { name: caSecret },
    },
    start: async () => {
      chownSync(folder, programUser, programUser);
      const { key, cert } = await selfSigned(`DNS:${name}`);
      await kubectl.apply(
        secret(passwordSecret, { password }),
        secret(caSecret, { "ca.crt": cert.toString() }),
        secret(tlsSecret, { "tls.crt": cert.toString(), "tls.key": key.toString() }),
        volume(kubectl, name, folder),
        claim(name),
        service(name, 5432),
      );
      await begin();
    },
    kill: async () => void (await kubectl.do("delete", "pod", name, "--grace-period=1")),
    restart: begin,
    hang: () => signal("STOP"),
    goOn: () => signal("CONT"),
    remove: async () => {
      const volume = volumeName(kubectl, name);
      await kubectl.do("delete", "persistentvolume", volume, "--ignore-not-found", "--timeout=60s");
      rmSync(folder, { recursive: true });
    },
  };
}

/** Starts Valkey without persistence. Returns the value of `spec.api.rateLimit.valkey`. */
export async function startPodValkey(kubectl: Kubectl, name: string): Promise<object> {
  const command = [valkeyPath, "--port", "6379", "--save", "", "--requirepass", password];
  const passwordSecret = `${name}-password`;
  await kubectl.apply(
    secret(passwordSecret, { password }),
    service(name, 6379),
    pod(name, 6379, { command }),
  );
  await ready(kubectl, name);
  return { url: `redis://${name}:6379`, secretRef: { name: passwordSecret } };
}

const valkeyPath = "/usr/bin/redis-server";

/** Builds the image with both programs and with the files that PostgreSQL needs to create a database. */
export async function giveStoresImage(): Promise<void> {
  const postgres = await postgresPrograms();
  const libraries = ["plpgsql.so", "dict_snowball.so"].map((file) => join(postgres, "../lib", file));
  const shared = postgres.replace("/usr/lib", "/usr/share").replace(/\/bin$/, "");
  await giveProgramImage({
    name: image,
    programs: [join(postgres, "postgres"), join(postgres, "initdb")],
    files: [...libraries, shared, "/usr/share/zoneinfo/Etc"],
    // The Redis program of Debian selects its function by its file name.
    renamed: { [valkeyPath]: await valkeyProgram() },
  });
}

interface PostgresFacts {
  readonly name: string;
  readonly programs: string;
  readonly passwordSecret: string;
  readonly tlsSecret: string;
}

function postgresPod({ name, programs, passwordSecret, tlsSecret }: PostgresFacts): object {
  const data = "/data/cluster";
  const make = [
    ...[
      `${programs}/initdb`,
      "--pgdata",
      data,
      "--username",
      owner,
      "--pwfile",
      "/secrets/password/password",
    ],
    ...["--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C"],
  ].join(" ");
  const settings = [
    ...["listen_addresses=*", "unix_socket_directories=", "ssl=on", "jit=off"],
    ...["ssl_cert_file=/secrets/tls/tls.crt", "ssl_key_file=/secrets/tls/tls.key"],
  ];
  const begin = [`${programs}/postgres`, "-D", data, ...settings.flatMap((setting) => ["-c", setting])];
  // The shell stays the first process of the container, because the first process cannot be stopped by a
  // signal from within the container.
  const script = `
    [ -s ${data}/PG_VERSION ] || { ${make} && echo "hostssl all all all scram-sha-256" >> ${data}/pg_hba.conf; } || exit 1
    ${begin.map((word) => `'${word}'`).join(" ")}`;
  return pod(name, 5432, {
    command: ["/bin/sh", "-c", script],
    volumes: [
      [{ name: "data", persistentVolumeClaim: { claimName: name } }, "/data"],
      [{ name: "password", secret: { secretName: passwordSecret } }, "/secrets/password"],
      // PostgreSQL accepts a key that root owns and that the group may read.
      [{ name: "tls", secret: { secretName: tlsSecret, defaultMode: 0o440 } }, "/secrets/tls"],
    ],
  });
}

interface Volume {
  readonly name: string;
  readonly [source: string]: unknown;
}

interface PodFacts {
  readonly command: readonly string[];
  readonly volumes?: readonly (readonly [volume: Volume, mountPath: string])[];
}

function pod(name: string, port: number, { command, volumes = [] }: PodFacts): object {
  const all: PodFacts["volumes"] = [...volumes, [{ name: "tmp", emptyDir: {} }, "/tmp"]];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels: { "e2e/program": name } },
    spec: {
      automountServiceAccountToken: false,
      securityContext: {
        ...{ runAsNonRoot: true, runAsUser: programUser, fsGroup: programUser },
        seccompProfile: { type: "RuntimeDefault" },
      },
      containers: [
        {
          ...{ name, image, command, imagePullPolicy: "IfNotPresent" },
          readinessProbe: { tcpSocket: { port }, periodSeconds: 1 },
          securityContext: {
            ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true },
            capabilities: { drop: ["ALL"] },
          },
          volumeMounts: all.map(([{ name }, mountPath]) => ({ name, mountPath })),
        },
      ],
      volumes: all.map(([volume]) => volume),
    },
  };
}

async function ready(kubectl: Kubectl, name: string): Promise<void> {
  const ran = await kubectl.try("wait", "--for=condition=Ready", `pod/${name}`, "--timeout=120s");
  if (ran.code === 0) return;
  const [log, described] = [await kubectl.try("logs", name), await kubectl.try("describe", "pod", name)];
  throw new Error(`${name} did not start: ${ran.stderr}${log.stdout}${described.stdout}`);
}

function secret(name: string, stringData: Record<string, string>): object {
  return { apiVersion: "v1", kind: "Secret", metadata: { name }, stringData };
}

function service(name: string, port: number): object {
  const spec = { selector: { "e2e/program": name }, ports: [{ port }] };
  return { apiVersion: "v1", kind: "Service", metadata: { name }, spec };
}

const capacity = { storage: "1Gi" };
const accessModes = ["ReadWriteOnce"];

/** Returns a PersistentVolume for a folder of this machine, which is also the node. */
function volume(kubectl: Kubectl, name: string, path: string): object {
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: volumeName(kubectl, name) },
    spec: {
      ...{ capacity, accessModes, storageClassName: "", persistentVolumeReclaimPolicy: "Retain" },
      claimRef: { namespace: kubectl.namespace, name },
      hostPath: { path, type: "Directory" },
    },
  };
}

function claim(name: string): object {
  const spec = { accessModes, storageClassName: "", resources: { requests: capacity } };
  return { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name }, spec };
}

function volumeName({ namespace }: Kubectl, name: string): string {
  return `${namespace}-${name}`;
}

const run = promisify(execFile);

/** The user that the containers run as. */
const programUser = 65532;

/** The content of an image with programs of the Debian packages on this machine. */
interface ProgramImage {
  readonly name: string;
  /** Programs. Their libraries are added too. */
  readonly programs: readonly string[];
  /** Files and folders that are copied unchanged. */
  readonly files?: readonly string[];
  /** Programs with another path in the image: the path in the image, mapped to the path on this machine. */
  readonly renamed?: Readonly<Record<string, string>>;
}

/** Builds the image, adds a shell, and imports the image into the first node of the local cluster. */
async function giveProgramImage({ name, programs, files = [], renamed = {} }: ProgramImage): Promise<void> {
  const layer = await mkdtemp(join(tmpdir(), "svc-tts-image-"));
  try {
    const all = ["/bin/sh", ...programs];
    const loaded = await librariesOf([...all, ...Object.values(renamed)]);
    await run("cp", ["--parents", "--recursive", "--dereference", ...all, ...loaded, ...files, layer]);
    for (const [there, here] of Object.entries(renamed)) {
      await mkdir(join(layer, dirname(there)), { recursive: true });
      await copyFile(here, join(layer, there));
    }
    await mkdir(join(layer, "etc"), { recursive: true });
    // PostgreSQL requires that its user has a name.
    await writeFile(join(layer, "etc/passwd"), `svc:x:${programUser}:${programUser}::/:/bin/sh\n`);
    await giveNodeImage({ name, layer, config: { User: String(programUser) } });
  } finally {
    await rm(layer, { recursive: true });
  }
}

/** Returns the libraries of the programs, including the loader. */
async function librariesOf(programs: readonly string[]): Promise<string[]> {
  const { stdout } = await run("ldd", programs);
  return [...new Set([...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path = ""]) => path))];
}
