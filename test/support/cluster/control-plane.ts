/**
 * Starts a real API server with etcd and without nodes. It needs no root, and uses leased ports of 127.0.0.1.
 * `cluster-setup.ts` starts one instance for a whole suite. A test file starts its own instance if it changes
 * cluster-scoped objects (CRDs, cluster roles, admission) or stops the API server.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { leasePorts } from "../port-lease.ts";

const CLUSTER_SCRIPTS = join(import.meta.dirname, "../../cluster");
/**
 * Time limits for a start or stop that hangs. They are long, because the machine may be busy with other
 * tests.
 */
const READY_WITHIN_MS = 240_000;
const STOP_WITHIN_MS = 30_000;
const DIRECTORY_PREFIX = "svc-tts-control-plane-";

/** The connection data of the API server. It is plain data, so that a suite can pass it to its tests. */
export interface ControlPlaneAddress {
  /** `https://127.0.0.1:PORT` */
  readonly server: string;
  /** The path of a kubeconfig of a cluster administrator. */
  readonly kubeconfigPath: string;
  /** The certificate authority, the certificate of the administrator and its key, in PEM. */
  readonly caPem: string;
  readonly adminCertPem: string;
  readonly adminKeyPem: string;
  /** The folder of the programs, such as kubectl, helm and kubeconform. */
  readonly binDirectory: string;
  /** The folder of the logs (`apiserver.log`, `etcd.log`) and the keys. `stop` removes it. */
  readonly directory: string;
}

export interface ControlPlaneOptions {
  /**
   * Runs when the API server is ready, before a controller starts. The garbage collector finds the CRDs that
   * this function installs at its start. Later it looks for new kinds only every 30 seconds.
   */
  readonly prepare?: (address: ControlPlaneAddress) => Promise<void>;
  /**
   * Also runs the garbage collector and the namespace controller, which foreground deletion and the deletion
   * of namespaces need. No other controller runs, so Deployments get no pods and no status.
   */
  readonly controllerManager?: boolean;
  /** Also runs these controllers, by their names in kube-controller-manager. */
  readonly controllers?: readonly string[];
  /**
   * Also runs the controllers and the scheduler that create the pods of Deployments, schedule the pods, and
   * allocate their devices. No kubelet runs these pods.
   */
  readonly scheduler?: boolean;
  /**
   * Also runs KWOK, which simulates every node and its pods. The pods are ready as soon as they are
   * scheduled.
   */
  readonly kwok?: boolean;
  /**
   * The addresses of the pods that KWOK simulates. A test can serve them if they are loopback addresses
   * (127.64.0.0/12).
   */
  readonly podCidr?: string;
  /**
   * An audit policy (audit.k8s.io/v1). The API server writes the entries to `audit.log`, one JSON object per
   * line.
   */
  readonly auditPolicy?: object;
}

export class ControlPlane implements AsyncDisposable {
  readonly address: ControlPlaneAddress;
  readonly #processes: readonly ChildProcess[];

  constructor(address: ControlPlaneAddress, processes: readonly ChildProcess[]) {
    this.address = address;
    this.#processes = processes;
  }

  /** Ends the processes in the reverse order of their start, and removes the folder. */
  async stop(): Promise<void> {
    for (const child of this.#processes.toReversed()) await end(child);
    await rm(this.address.directory, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/**
 * Starts etcd, the API server, and the programs that the options select. This takes about three seconds if
 * the programs are built. Otherwise `test/cluster/tools.sh` builds them first. The processes end with this
 * process.
 *
 * @throws Error with the last log lines of all programs
 */
export async function controlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  await removeLeftovers();
  const binDirectory = await clusterPrograms();
  const directory = await mkdtemp(join(tmpdir(), `${DIRECTORY_PREFIX}${process.pid}-`));
  const processes: ChildProcess[] = [];
  try {
    const [apiPort, etcdPort, peerPort] = await leasePorts(3);
    const server = `https://127.0.0.1:${apiPort}`;
    await promisify(execFile)(join(CLUSTER_SCRIPTS, "pki.sh"), [join(directory, "pki"), server, "127.0.0.1"]);
    const address = await readAddress(server, directory, binDirectory);
    processes.push(launch(address, "etcd", etcdArguments(directory, Number(etcdPort), Number(peerPort))));
    const apiServer = launch(address, "kube-apiserver", [
      ...apiServerArguments(address, Number(apiPort), Number(etcdPort), options.kwok ?? false),
      ...(options.auditPolicy === undefined ? [] : await auditArguments(directory, options.auditPolicy)),
    ]);
    processes.push(apiServer);
    await ready(address, processes);
    await options.prepare?.(address);
    const more = [...(options.scheduler ? workloadControllers : []), ...(options.controllers ?? [])];
    if (options.controllerManager || more.length > 0) {
      processes.push(launch(address, "kube-controller-manager", controllerArguments(directory, more)));
    }
    if (options.scheduler) processes.push(launch(address, "kube-scheduler", schedulerArguments(directory)));
    if (options.kwok)
      processes.push(launch(address, "kwok", kwokArguments(address, options.podCidr ?? noPods)));
    return new ControlPlane(address, processes);
  } catch (cause) {
    for (const child of processes.toReversed()) await end(child);
    await rm(directory, { recursive: true, force: true });
    throw cause;
  }
}

/**
 * Returns the folder of the programs of the cluster. Builds missing programs, and prints progress to standard
 * error.
 */
async function clusterPrograms(): Promise<string> {
  const build = spawn(join(CLUSTER_SCRIPTS, "tools.sh"), { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  build.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const [code] = await once(build, "close");
  if (code !== 0)
    throw new Error(
      "the programs of the cluster could not be built: run test/cluster/tools.sh to see the error",
    );
  return output.trim();
}

/** Removes the folders of killed runs. The programs of such a run were killed with it (see `launch`). */
async function removeLeftovers(): Promise<void> {
  const owned = new RegExp(`^${DIRECTORY_PREFIX}(\\d+)-`);
  for (const name of await readdir(tmpdir())) {
    const owner = owned.exec(name)?.[1];
    if (owner && !existsSync(`/proc/${owner}`))
      await rm(join(tmpdir(), name), { recursive: true, force: true });
  }
}

async function readAddress(
  server: string,
  directory: string,
  binDirectory: string,
): Promise<ControlPlaneAddress> {
  const pem = (name: string): Promise<string> => readFile(join(directory, "pki", name), "utf8");
  return {
    server,
    kubeconfigPath: join(directory, "pki/admin.kubeconfig"),
    caPem: await pem("ca.crt"),
    adminCertPem: await pem("admin.crt"),
    adminKeyPem: await pem("admin.key"),
    binDirectory,
    directory,
  };
}

/**
 * Settings of the Go runtime. The API server needs a seventh less CPU time with them, and up to 200 MB more
 * memory.
 */
const rareGarbageCollection = { GOGC: "400", GOMEMLIMIT: "512MiB" };

/**
 * Starts a program in its own process group, so that Ctrl-C does not reach it. The kernel kills it with this
 * process.
 */
function launch(
  address: ControlPlaneAddress,
  program: string,
  programArguments: readonly string[],
): ChildProcess {
  const log = openSync(join(address.directory, `${program}.log`), "a");
  const command = ["--pdeathsig", "KILL", "--", join(address.binDirectory, program), ...programArguments];
  const env = { ...process.env, ...rareGarbageCollection };
  const child = spawn("setpriv", command, { stdio: ["ignore", log, log], detached: true, env });
  closeSync(log);
  return child;
}

function etcdArguments(directory: string, clientPort: number, peerPort: number): string[] {
  const client = `http://127.0.0.1:${clientPort}`;
  const peer = `http://127.0.0.1:${peerPort}`;
  return [
    `--data-dir=${join(directory, "etcd")}`,
    "--unsafe-no-fsync",
    "--log-level=warn",
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
  ];
}

function apiServerArguments(
  address: ControlPlaneAddress,
  port: number,
  etcdPort: number,
  kwok: boolean,
): string[] {
  const pki = join(address.directory, "pki");
  return [
    `--etcd-servers=http://127.0.0.1:${etcdPort}`,
    "--bind-address=127.0.0.1",
    "--advertise-address=127.0.0.1",
    `--secure-port=${port}`,
    "--service-cluster-ip-range=10.96.0.0/16",
    "--authorization-mode=Node,RBAC",
    "--enable-admission-plugins=NodeRestriction",
    // These admission plugins need controllers that do not run: one for ServiceAccounts, and one for taints
    // of nodes.
    `--disable-admission-plugins=ServiceAccount${kwok ? ",TaintNodesByCondition" : ""}`,
    `--client-ca-file=${pki}/ca.crt`,
    `--tls-cert-file=${pki}/apiserver.crt`,
    `--tls-private-key-file=${pki}/apiserver.key`,
    "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
    `--service-account-key-file=${pki}/service-account.pub`,
    `--service-account-signing-key-file=${pki}/service-account.key`,
    "--endpoint-reconciler-type=none",
    "--allow-privileged=true",
    // A test sends few requests, so they need no queues.
    "--enable-priority-and-fairness=false",
  ];
}

/** Returns flags for one log file without rotation, because the folder is temporary. */
async function auditArguments(directory: string, auditPolicy: object): Promise<string[]> {
  const log = join(directory, "audit.log");
  const policy = join(directory, "audit-policy.json");
  await writeFile(policy, JSON.stringify(auditPolicy));
  return [`--audit-policy-file=${policy}`, `--audit-log-path=${log}`, "--audit-log-maxsize=4096"];
}

const noPods = "10.64.0.0/12";

/** The lease duration is long, because no test depends on the failure of a node. */
function kwokArguments({ directory, binDirectory }: ControlPlaneAddress, podCidr: string): string[] {
  return [
    `--config=${join(binDirectory, "../kwok-stages.yaml")}`,
    `--kubeconfig=${join(directory, "pki/admin.kubeconfig")}`,
    "--manage-all-nodes=true",
    "--node-ip=10.0.0.1",
    `--cidr=${podCidr}`,
    "--node-lease-duration-seconds=3600",
  ];
}

const workloadControllers = ["deployment-controller", "replicaset-controller", "resourceclaim-controller"];

function schedulerArguments(directory: string): string[] {
  const kubeconfig = join(directory, "pki/admin.kubeconfig");
  return [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    "--secure-port=0",
    "--leader-elect=false",
    "--kube-api-qps=300",
    "--kube-api-burst=600",
  ];
}

function controllerArguments(directory: string, more: readonly string[]): string[] {
  // The controllers use the kubeconfig of the administrator, because no controller creates ServiceAccounts
  // for them.
  const kubeconfig = join(directory, "pki/admin.kubeconfig");
  return [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    `--controllers=${["garbage-collector-controller", "namespace-controller", ...more].join(",")}`,
    // Nothing scrapes the controller manager, so it needs no port.
    "--secure-port=0",
    "--leader-elect=false",
    "--kube-api-qps=300",
    "--kube-api-burst=600",
  ];
}

async function ready(address: ControlPlaneAddress, processes: readonly ChildProcess[]): Promise<void> {
  const deadline = Date.now() + READY_WITHIN_MS;
  while (!(await answersReady(address))) {
    const ended = processes.find((child) => child.exitCode !== null || child.signalCode !== null);
    if (ended || Date.now() > deadline) {
      const cause = ended ? `${ended.spawnargs[4]} ended` : `not ready after ${READY_WITHIN_MS / 1000} s`;
      throw new Error(`the control plane did not start: ${cause}\n${await lastLogLines(address.directory)}`);
    }
    await delay(50);
  }
}

function answersReady({ server, caPem, adminCertPem, adminKeyPem }: ControlPlaneAddress): Promise<boolean> {
  return new Promise((resolve) => {
    const options = { ca: caPem, cert: adminCertPem, key: adminKeyPem, agent: false, timeout: 2_000 };
    const probe = request(`${server}/readyz`, options, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    probe.on("timeout", () => probe.destroy());
    probe.on("error", () => resolve(false));
    probe.end();
  });
}

async function lastLogLines(directory: string): Promise<string> {
  const parts: string[] = [];
  for (const name of await readdir(directory)) {
    if (!name.endsWith(".log")) continue;
    const lines = (await readFile(join(directory, name), "utf8")).trimEnd().split("\n").slice(-10);
    parts.push(`--- ${name}`, ...lines);
  }
  return parts.join("\n");
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const stopped = await Promise.race([exited.then(() => true), delay(STOP_WITHIN_MS, false, { ref: false })]);
  if (!stopped) {
    child.kill("SIGKILL");
    await exited;
  }
}
