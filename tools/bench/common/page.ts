import type { TargetResult, TargetRow } from "./measurement.ts";

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly node: string;
  readonly kernel: string;
  /**
   * The load of the machine by other programs: the mean number of runnable tasks in the minute before the
   * run.
   */
  readonly loadBefore: number;
}

/** The highest load by other programs at which the figures are reliable. */
const calmLoad = 0.5;

export interface Chapter {
  readonly name: string;
  readonly finding: TargetResult;
}

/** Returns the complete text of `docs/benchmarks.md`. */
export function benchmarksPage(machine: Machine, chapters: readonly Chapter[]): string {
  return `# Benchmarks

\`\`\`sh
make bench           # 15 minutes
make bench SOAK=1    # 10 minutes more: also measures memory over time
\`\`\`

Both commands write this page and its plots. [Another page](benchmarks-operator.md) has the benchmarks of the operator. ${machineSentence(machine)} The load tool and the
server share the machine, so compare only figures of the same run. For each figure with a target, the benchmark alternates between the server and its reference.${calmSentence(machine)}

## Targets

${targetsTable(chapters.flatMap(({ finding }) => finding.targets))}

${chapters.map(({ name, finding }) => `## ${name}\n\n${finding.text}\n`).join("\n")}
${ownMeasurements}`;
}

const ownMeasurements = `## Measure your own server

\`\`\`sh
svc-tts bench --url https://tts.example.com --key "$KEY" --streams 50 --seconds 60 --accept audio/mpeg --json run.json --svg run.svg
\`\`\`

This command keeps 50 streams running for a minute. With \`--openai\` it measures a server with OpenAI's API. It reports the number of complete responses,
the time to first audio and real-time factor (p50, p95, p99), the share of streams with underruns of more than 100 ms, and bytes and seconds of audio, as a
table, as JSON and as a plot. \`svc-tts bench --help\` lists every option.

\`\`\`sh
svc-tts bench --ws --url https://tts.example.com --key "$KEY" --streams 50 --seconds 60 --pace 30 --json run.json --svg run.svg
\`\`\`

This command measures [WebSockets](reference/websockets.md) instead: 50 open sockets, each with one context after another, whose text arrives with 30 words per second. It reports contexts per second, first audio after the
first sentence beside HTTP requests of the same sentences in the same run, gaps between chunks, and the time from \`clear\` to silence.

\`--ws\` uses only \`/ws3\` with PCM. The time to first audio starts when the last word of the first sentence is sent. \`--ws-only\` omits the HTTP requests. The default voice is \`alan\` of \`mist\`, an artificial
voice; \`--voice af_heart --model mist\` measures a natural voice in both commands.

## On a GPU

\`\`\`sh
svc-tts bench --gpu --url https://tts.example.com --key "$KEY" --model arcana --voice luna --vllm http://127.0.0.1:PORT --json gpu.json
\`\`\`

This command runs 1, 8, 32, 64 and 128 streams in turn for 20 s each. Then it tries numbers between the last number that met the criterion and the first number that did not. The criterion is that 99 of 100 streams have their
first audio within a second and are not slower than real time, and that no stream fails. \`--vllm\` is the address of the server's vLLM: run \`kubectl port-forward POD PORT\` with the port in the field \`url\` of the log line \`vLLM is ready\`. The command then
also reports the tokens per second that vLLM wrote in this time, and the tokens per second that vLLM writes for the same number of completions without the server.

**Not run yet**: no GPU with vLLM was available. The command was tested with fake servers. [Measurements](evidence/measurements.md#arcana-with-vllm) has the figures of vLLM
on a CPU.
`;

export function targetsTable(rows: readonly TargetRow[]): string {
  return markdownTable(
    ["what", "target", "measured", "met"],
    rows.map(({ what, target, measured, met }) => [what, target, measured, met ? "yes" : "no"]),
  );
}

/** Returns a warning if other programs loaded the machine, and otherwise an empty text. */
export function calmSentence({ loadBefore, cores }: Pick<Machine, "loadBefore" | "cores">): string {
  if (loadBefore <= calmLoad) return "";
  return `\n\n**The machine was not idle**: ${loadBefore.toFixed(1)} other tasks used its ${cores} cores before the run, so times are longer than on an idle machine.`;
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
  const others = `${loadBefore.toFixed(1)} other tasks ran on average`;
  return `The machine of this run has ${cores} cores (${processor}), ${memory}, Linux ${kernel} and Node ${node}. In the minute before the run, ${others}.`;
}

export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
