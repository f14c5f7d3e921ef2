/**
 * Creates the environment of the measurement: a real control plane, and nodes with GPUs that KWOK simulates.
 */
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ClusterClient } from "../../../operator/cluster/client.ts";
import { chartsRole } from "../../../test/support/cluster/charts-role.ts";
import { adminClient } from "../../../test/support/cluster/cluster-namespace.ts";
import {
  type ControlPlane,
  type ControlPlaneAddress,
  controlPlane,
} from "../../../test/support/cluster/control-plane.ts";
import { installCrds, kubectlOrThrow } from "../../../test/support/cluster/kubectl.ts";
import { AuditLog, auditPolicy } from "./audit.ts";
import { inParallel } from "./parallel.ts";

const gpusPerNode = 8;
const podsPerNode = 110;

export interface Field extends AsyncDisposable {
  readonly address: ControlPlaneAddress;
  readonly admin: ClusterClient;
  readonly audit: AuditLog;
}

/** The namespace and the account of one operator. */
export interface Plot {
  readonly namespace: string;
  /** The name of the operator's user in the audit log. */
  readonly user: string;
  /** The folder with the files of a service account: ca.crt, namespace and token. */
  readonly accountFolder: string;
}

export const namespaces = { ours: "bench-ours", twin: "bench-twin" } as const;

/**
 * Starts a control plane with the CRDs, and with `nodes` nodes that have 8 GPUs each. `podCidr` is the
 * network of their pods.
 */
export async function openField(nodes: number, podCidr?: string): Promise<Field> {
  const users = Object.values(namespaces).map(userOf);
  let plane: ControlPlane | undefined;
  let admin: ClusterClient | undefined;
  let audit: AuditLog | undefined;
  const close = async () => {
    audit?.close();
    admin?.close();
    await plane?.stop();
  };
  try {
    const cidr = podCidr === undefined ? {} : { podCidr };
    plane = await controlPlane({ scheduler: true, kwok: true, auditPolicy: auditPolicy(users), ...cidr });
    const { address } = plane;
    admin = await adminClient(address);
    audit = new AuditLog(join(address.directory, "audit.log"));
    await installCrds(address);
    await makeNodes(admin, nodes);
    return { address, admin, audit, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Creates a namespace with the service account and the roles of the chart. */
export async function openPlot({ address, admin }: Field, namespace: string): Promise<Plot> {
  await admin.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  await chartsRole(address, namespace);
  const account = `${namespace}-tts-operator`;
  // The twin lists Secrets for its cache, which is the default of controller-runtime. The role of the
  // operator does not allow this list.
  if (namespace === namespaces.twin) await letListSecrets(address, namespace, account);
  const token = ["create", "token", account, "-n", namespace, "--duration=24h"];
  const accountFolder = mkdtempSync(join(address.directory, `${namespace}-`));
  const files = {
    token: (await kubectlOrThrow(address, token)).trim(),
    "ca.crt": address.caPem,
    namespace,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(accountFolder, name), text);
  return { namespace, user: userOf(namespace), accountFolder };
}

async function letListSecrets(
  address: ControlPlaneAddress,
  namespace: string,
  account: string,
): Promise<void> {
  const role = ["create", "role", "list-secrets", "--verb=list", "--resource=secrets", "-n", namespace];
  await kubectlOrThrow(address, role);
  const subject = ["--role=list-secrets", `--serviceaccount=${namespace}:${account}`, "-n", namespace];
  await kubectlOrThrow(address, ["create", "rolebinding", "list-secrets", ...subject]);
}

function userOf(namespace: string): string {
  return `system:serviceaccount:${namespace}:${namespace}-tts-operator`;
}

async function makeNodes(admin: ClusterClient, count: number): Promise<void> {
  const room = {
    cpu: "64",
    memory: "512Gi",
    pods: String(podsPerNode),
    "nvidia.com/gpu": String(gpusPerNode),
  };
  await inParallel(Array.from({ length: count }).keys(), async (index) => {
    const name = `gpu-${String(index).padStart(4, "0")}`;
    await admin.create({
      apiVersion: "v1",
      kind: "Node",
      metadata: { name, labels: { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" } },
      status: { capacity: room, allocatable: room },
    });
  });
}
