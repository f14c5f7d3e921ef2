/** Creates an administrator client for the API server of the suite. */
import { randomBytes } from "node:crypto";
import { ClusterClient } from "../../../operator/cluster/client.ts";
import type { ControlPlaneAddress } from "./control-plane.ts";

/** The kubeconfig of the address is not read, because the library that reads it takes half a second to load. */
export async function adminClient(address: ControlPlaneAddress): Promise<ClusterClient> {
  const { server, caPem: ca, adminCertPem: cert, adminKeyPem: key } = address;
  return new ClusterClient({
    server: new URL(server),
    namespace: undefined,
    credentials: async () => ({ headers: {}, tls: { ca, cert, key } }),
    refresh: () => undefined,
  });
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
