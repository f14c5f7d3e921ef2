/** Creates an administrator client for the API server of the suite. */
import { randomBytes } from "node:crypto";
import { ClusterClient } from "../../../operator/cluster/client.ts";
import { connect } from "../../../operator/cluster/connect.ts";
import type { ControlPlaneAddress } from "./control-plane.ts";

export async function adminClient(address: ControlPlaneAddress): Promise<ClusterClient> {
  return new ClusterClient(await connect({ kubeconfig: address.kubeconfigPath }));
}

/**
 * Creates a namespace for one test, and returns its name. The namespace is never deleted: the API server is
 * temporary.
 */
export async function freshNamespace(client: ClusterClient, prefix: string): Promise<string> {
  const name = `${prefix}-${randomBytes(4).toString("hex")}`;
  await client.create({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
  return name;
}
