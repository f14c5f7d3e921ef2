import { UsageError } from "../../lib/usage-error.ts";
import { gatherEvidence } from "./evidence.ts";
import { explain, explanationText } from "./explain.ts";
import { parseOptions, reachCluster, type Terminal } from "./terminal.ts";

const notReady = 3;

/** Runs `tts-operator explain NAME`. The exit code is 0 if the TtsDeployment is ready, and otherwise 3. */
export async function explainCommand(words: readonly string[], terminal: Terminal): Promise<number> {
  const options = parseOptions("explain", words, ["namespace", "kubeconfig", "context", "output"]);
  const [name, ...more] = options.positionals;
  const { output } = options.flags;
  if (name === undefined || more.length > 0) {
    throw new UsageError(
      "explain takes the name of one TtsDeployment, for example: tts-operator explain demo -n speech",
    );
  }
  if (output !== undefined && output !== "json") {
    throw new UsageError(`--output is ${output}; it must be json, or omitted for text`);
  }
  const { client, namespace } = await reachCluster(options, terminal);
  try {
    const explanation = explain(await gatherEvidence(client, { namespace, name, now: Date.now() }));
    terminal.print(
      output === "json" ? `${JSON.stringify(explanation, null, 2)}\n` : explanationText(explanation),
    );
    return explanation.state === "ready" ? 0 : notReady;
  } finally {
    client.close();
  }
}
