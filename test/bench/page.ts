import type { Finding, TargetRow } from "./measurement.ts";

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly node: string;
  readonly kernel: string;
  /** Mean number of runnable tasks in the minute before the run: what else the machine was busy with. */
  readonly loadBefore: number;
}

/** Above this, the other tasks move the figures by more than what they are to show. */
const calmLoad = 0.5;

export interface Chapter {
  readonly name: string;
  readonly finding: Finding;
}

/** `docs/benchmarks.md`, whole. */
export function benchmarksPage(machine: Machine, chapters: readonly Chapter[]): string {
  return `# Benchmarks

\`\`\`sh
make bench           # 6 minutes
make bench SOAK=1    # 10 minutes more: whether memory stays flat
\`\`\`

writes this page and its plots; [the operator](benchmarks-operator.md) has a page of its own. ${machineSentence(machine)} The load tool and the
server share it, so compare within one run only: every figure with a target stands beside what it is compared with, measured in turn.${calmSentence(machine)}

## Targets

${targetsTable(chapters.flatMap(({ finding }) => finding.targets))}

${chapters.map(({ name, finding }) => `## ${name}\n\n${finding.text}\n`).join("\n")}
${ownMeasurements}`;
}

const ownMeasurements = `## Your own

\`\`\`sh
svc-tts bench --url https://tts.example.com --key "$KEY" --streams 50 --seconds 60 --accept audio/mpeg --json run.json --svg run.svg
\`\`\`

keeps 50 streams speaking for a minute on any server, ours or, with \`--openai\`, one in OpenAI's shape. It tells how many answers were complete,
first audio and real-time factor (p50, p95, p99), the share of streams that starved for more than 100 ms, and bytes and seconds of audio: as a
table, as JSON and as a plot. \`svc-tts bench --help\` lists every option.

## On a GPU

\`\`\`sh
svc-tts bench --gpu --url https://tts.example.com --key "$KEY" --model arcana --voice luna --vllm http://127.0.0.1:PORT --json gpu.json
\`\`\`

speaks 1, 8, 32, 64 and 128 streams in turn for 20 s each, then what lies between the last number that held and the first that did not: 99 of 100 streams
are heard within a second and are spoken no slower than speech, and none fails. With \`--vllm\`, the address of the server's own vLLM (\`kubectl port-forward POD PORT\` with the port that the log line \`vLLM writes\` names), it
also tells the tokens a second that vLLM wrote meanwhile, and those that it writes alone for as many completions.

**Not run yet**: there was no GPU with vLLM on it. The command is tested against servers that stand in for both. What was measured of
vLLM on a processor is in [arcana](how-to/serve-a-larger-model.md).
`;

export function targetsTable(rows: readonly TargetRow[]): string {
  return table(
    ["what", "target", "measured", "met"],
    rows.map(({ what, target, measured, met }) => [what, target, measured, met ? "yes" : "no"]),
  );
}

/** What to say where the machine was not calm; empty where it was. */
export function calmSentence({ loadBefore, cores }: Pick<Machine, "loadBefore" | "cores">): string {
  if (loadBefore <= calmLoad) return "";
  return `\n\n**The machine was not calm**: ${loadBefore.toFixed(1)} other tasks shared its ${cores} cores before the run, so times are longer than they need be.`;
}

export function machineSentence({
  processor,
  cores,
  memoryBytes,
  node,
  kernel,
  loadBefore,
}: Machine): string {
  const memory = `${(memoryBytes / 2 ** 30).toFixed(0)} GiB of memory`;
  const others = `busy with ${loadBefore.toFixed(1)} other tasks on average in the minute before`;
  return `This run: ${cores} cores (${processor}), ${memory}, Linux ${kernel}, Node ${node}, ${others}.`;
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
