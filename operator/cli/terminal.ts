import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { UsageError } from "../../lib/usage-error.ts";
import { ClusterClient } from "../cluster/client.ts";
import { connect } from "../cluster/connect.ts";
import type { CommandOptions } from "./options.ts";

/** The part of the process that an interactive command uses. */
export interface Terminal {
  readonly environment: Readonly<Record<string, string | undefined>>;
  print(text: string | Uint8Array): void;
  complain(text: string): void;
}

export interface Access {
  readonly client: ClusterClient;
  /** The address of the API server, for messages. */
  readonly server: string;
  readonly namespace: string;
}

/** Finds the cluster like kubectl: the flag, `KUBECONFIG`, the service account of the pod, `~/.kube/config`. */
export async function reachCluster({ flags }: CommandOptions, { environment }: Terminal): Promise<Access> {
  const connection = await connect({
    kubeconfig: await kubeconfigOf(flags.kubeconfig, environment),
    context: flags.context,
    serviceHost: environment.KUBERNETES_SERVICE_HOST,
    servicePort: environment.KUBERNETES_SERVICE_PORT,
  });
  return {
    client: new ClusterClient(connection),
    server: connection.server.origin,
    namespace: flags.namespace ?? connection.namespace ?? "default",
  };
}

async function kubeconfigOf(
  flag: string | undefined,
  environment: Terminal["environment"],
): Promise<string | undefined> {
  const named = flag ?? (environment.KUBECONFIG || undefined);
  if (named !== undefined) {
    if (flag === undefined && named.includes(delimiter)) {
      throw new UsageError("KUBECONFIG names several files; name one of them with --kubeconfig");
    }
    return named;
  }
  const home = join(environment.HOME ?? "", ".kube/config");
  if (environment.KUBERNETES_SERVICE_HOST || !environment.HOME) return undefined;
  return access(home, constants.R_OK).then(
    () => home,
    () => undefined,
  );
}
