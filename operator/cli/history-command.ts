import { UsageError } from "../../lib/usage-error.ts";
import { ApiError } from "../cluster/api-error.ts";
import type { ClusterClient, PatchOperation } from "../cluster/client.ts";
import type { TtsDeployment } from "../facts/observed.ts";
import {
  previousRevision,
  type RevisionLine,
  readDeployment,
  readHistory,
  revisionLines,
} from "./history.ts";
import { parseOptions, reachCluster, type Terminal } from "./terminal.ts";

/** Runs `tts-operator history NAME [MODEL]`, which lists the revisions of the pools. */
export async function historyCommand(words: readonly string[], terminal: Terminal): Promise<number> {
  const options = parseOptions("history", words, ["namespace", "kubeconfig", "context", "output"]);
  const [name, model, ...more] = options.positionals;
  const { output } = options.flags;
  if (name === undefined || more.length > 0)
    throw new UsageError(
      "history takes the name of a TtsDeployment and optionally of one of its models, for example: tts-operator history demo mist -n speech",
    );
  if (output !== undefined && output !== "json")
    throw new UsageError(`--output is ${output}; it must be json, or omitted for text`);
  const { client, namespace } = await reachCluster(options, terminal);
  try {
    const deployment = await readDeployment(client, { namespace, name });
    const models = model === undefined ? deployment.spec.models.map(({ name }) => name) : [model];
    const histories = await Promise.all(models.map((one) => readHistory(client, deployment, one)));
    const lines = histories.flatMap(revisionLines);
    terminal.print(output === "json" ? `${JSON.stringify(lines, null, 2)}\n` : historyText(lines));
    return 0;
  } finally {
    client.close();
  }
}

function historyText(lines: readonly RevisionLine[]): string {
  if (lines.length === 0)
    return "The history has no revision yet. A revision appears when its rollout is complete.\n";
  const rows = [
    ["MODEL", "NUMBER", "REVISION", "SERVED SINCE", "CURRENT", "CHANGED", "IMAGE"],
    ...lines.map((line) => [
      line.model,
      String(line.number),
      line.revision,
      line.servedSince,
      line.isCurrent ? "yes" : "",
      line.changed.join(","),
      line.image,
    ]),
  ];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join("   ")
          .trimEnd()}\n`,
    )
    .join("");
}

const fieldManager = "tts-operator-rollback";

/**
 * Runs `tts-operator rollback NAME MODEL`, which sets `rollout.rollbackTo` of the model to the revision of `--to`,
 * or to the previous revision. With `--cancel` it removes the field.
 */
export async function rollbackCommand(words: readonly string[], terminal: Terminal): Promise<number> {
  const options = parseOptions("rollback", words, ["namespace", "kubeconfig", "context", "to", "cancel"]);
  const [name, model, ...more] = options.positionals;
  const { to, cancel = false } = options.flags;
  if (name === undefined || model === undefined || more.length > 0)
    throw new UsageError(
      "rollback takes the names of a TtsDeployment and of one of its models, for example: tts-operator rollback demo mist -n speech",
    );
  if (cancel && to !== undefined)
    throw new UsageError("rollback: --cancel and --to cannot be combined; use one of them");
  const { client, namespace } = await reachCluster(options, terminal);
  try {
    const deployment = await readDeployment(client, { namespace, name });
    const message = cancel
      ? await cancelRollback(client, deployment, model)
      : await startRollback(client, deployment, model, to);
    terminal.print(`${message}\n`);
    return 0;
  } catch (error) {
    if (!(error instanceof PatchForbidden)) throw error;
    terminal.complain(`tts-operator: ${error.message}\n`);
    terminal.print(`${error.command}\n`);
    return 1;
  } finally {
    client.close();
  }
}

/** The error for a user who may not patch the TtsDeployment, with the command for a user who may. */
class PatchForbidden extends Error {
  readonly command: string;

  constructor(message: string, command: string, options: ErrorOptions) {
    super(message, options);
    this.command = command;
  }
}

async function startRollback(
  client: ClusterClient,
  deployment: TtsDeployment,
  model: string,
  to: string | undefined,
): Promise<string> {
  const history = await readHistory(client, deployment, model);
  const target = to === undefined ? previousRevision(history) : history.revisions.find(({ id }) => id === to);
  if (target === undefined) {
    const known = history.revisions.map(({ id }) => id).join(", ") || "none";
    throw new UsageError(
      to === undefined
        ? `the history of the model ${model} has no revision before the current one`
        : `the history of the model ${model} has no revision ${to}; its revisions are: ${known}`,
    );
  }
  await setRollback(client, deployment, model, { op: "add", value: target.id });
  return `The model ${model} returns to revision ${target.id}. Its other settings in the TtsDeployment do not apply until you remove rollout.rollbackTo: tts-operator rollback ${deployment.metadata.name} ${model} -n ${deployment.metadata.namespace} --cancel`;
}

async function cancelRollback(
  client: ClusterClient,
  deployment: TtsDeployment,
  model: string,
): Promise<string> {
  const { rollbackTo } = await readHistory(client, deployment, model);
  if (rollbackTo === undefined)
    throw new UsageError(`the model ${model} has no rollout.rollbackTo, so there is nothing to cancel`);
  await setRollback(client, deployment, model, { op: "remove" });
  return `The settings of the model ${model} in the TtsDeployment apply again.`;
}

/** Changes `rollbackTo`. The list of models may change meanwhile, so the patch tests the name of the model. */
async function setRollback(
  client: ClusterClient,
  { apiVersion, kind, metadata, spec }: TtsDeployment,
  model: string,
  change: { op: "add"; value: string } | { op: "remove" },
): Promise<void> {
  const entry = `/spec/models/${spec.models.findIndex(({ name }) => name === model)}`;
  const operations: PatchOperation[] = [
    { op: "test", path: `${entry}/name`, value: model },
    { ...change, path: `${entry}/rollout/rollbackTo` },
  ];
  const { namespace, name } = metadata;
  try {
    await client.patchFields({ apiVersion, kind, namespace, name }, operations, fieldManager);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403) throw error;
    throw new PatchForbidden(
      `you may not change TtsDeployment ${name}: ${error.message.replace(/\.$/, "")}. A user with this right can run the command below. If a repository manages the object, set rollout.rollbackTo there.`,
      // The names of objects and revisions contain no quotation marks.
      `kubectl patch ttsdeployment ${name} -n ${namespace} --type=json -p '${JSON.stringify(operations)}'`,
      { cause: error },
    );
  }
}
