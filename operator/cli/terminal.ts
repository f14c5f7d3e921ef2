import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { parseArgs } from "node:util";
import { UsageError } from "../../lib/usage-error.ts";
import { ClusterClient } from "../cluster/client.ts";
import { connect } from "../cluster/connect.ts";

/** The parts of the process that an interactive command uses. */
export interface Terminal {
  readonly environment: Readonly<Record<string, string | undefined>>;
  print(text: string | Uint8Array): void;
  complain(text: string): void;
}

interface Access {
  readonly client: ClusterClient;
  /** The address of the API server, for messages. */
  readonly server: string;
  readonly namespace: string;
}

/**
 * Connects to the cluster like kubectl: by flag, `KUBECONFIG`, the service account of the pod, or
 * `~/.kube/config`.
 */
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

const flags = {
  namespace: { type: "string", short: "n" },
  kubeconfig: { type: "string" },
  context: { type: "string" },
  output: { type: "string", short: "o" },
  file: { type: "string", short: "f" },
  "operator-namespace": { type: "string" },
  to: { type: "string" },
  cancel: { type: "boolean" },
} as const;

type Flag = keyof typeof flags;

interface CommandOptions {
  readonly positionals: readonly string[];
  readonly flags: Readonly<Partial<Record<Exclude<Flag, "cancel">, string>>> & { readonly cancel?: boolean };
}

/**
 * Parses the options. Throws `UsageError` for a flag that is not in `allowed`, and for a flag without a
 * value.
 */
export function parseOptions(
  command: string,
  words: readonly string[],
  allowed: readonly Flag[],
): CommandOptions {
  const options = Object.fromEntries(allowed.map((name) => [name, flags[name]]));
  try {
    const { positionals, values } = parseArgs({ args: [...words], options, allowPositionals: true });
    return { positionals, flags: values as CommandOptions["flags"] };
  } catch (error) {
    const [sentence] = (error instanceof Error ? error.message : String(error)).split(". ");
    throw new UsageError(`${command}: ${sentence}; see tts-operator --help`, { cause: error });
  }
}
