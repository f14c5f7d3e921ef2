/**
 * `make bench-load-balancing` simulates how several API processes share replicas, with the replica selection
 * of the server.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { markdownTable } from "../common/page.ts";
import { linesPlot } from "../common/plot.ts";
import { policies, type SimulationResult, simulate } from "./simulation.ts";

const docs = join(import.meta.dirname, "../../../docs");
const requests = Number(process.env.REQUESTS || 20_000);
const seed = Number(process.env.SEED || 1);

const fleets = [
  { replicas: 4, capacity: 8 },
  { replicas: 8, capacity: 4 },
] as const;
const apiProcesses = [1, 4, 8] as const;
const loads = [0.6, 0.7, 0.8, 0.9] as const;

const chapters = fleets.map((fleet) => {
  const rows = apiProcesses.flatMap((processes) =>
    loads.map((load) => ({
      processes,
      load,
      outcomes: policies.map((policy) =>
        simulate({ ...fleet, policy, apiProcesses: processes, load, requests, seed }),
      ),
    })),
  );
  return { ...fleet, rows };
});

const name = ({ replicas, capacity }: (typeof fleets)[number]) =>
  `${replicas} replicas of ${capacity} streams`;
const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
const cells = (outcomes: readonly SimulationResult[], show: (outcome: SimulationResult) => string) =>
  outcomes.map(show);

const text = chapters.map((chapter) => {
  const head = ["API processes", "load", ...policies];
  const rowsOf = (show: (outcome: SimulationResult) => string) =>
    chapter.rows.map(({ processes, load, outcomes }) => [
      String(processes),
      percent(load),
      ...cells(outcomes, show),
    ]);
  return [
    `## ${name(chapter)}`,
    "Requests that waited at a full replica while another had capacity:",
    markdownTable(
      head,
      rowsOf(({ misplaced }) => percent(misplaced)),
    ),
    "First audio, p99, milliseconds (100 without any wait):",
    markdownTable(
      head,
      rowsOf(({ firstAudioP99Ms }) => firstAudioP99Ms.toFixed(0)),
    ),
    "Replicas tried for each request, on average:",
    markdownTable(
      head,
      rowsOf(({ tried }) => tried.toFixed(2)),
    ),
  ].join("\n\n");
});

const [fleet] = chapters.slice(-1);
const panels = apiProcesses.map((processes) => ({
  title: `${processes} API process${processes === 1 ? "" : "es"}`,
  lines: policies.map((policy, i) => ({
    name: policy,
    points: (fleet?.rows ?? [])
      .filter((row) => row.processes === processes)
      .map(({ load, outcomes }) => ({ x: 100 * load, y: 100 * (outcomes[i]?.misplaced ?? 0) })),
  })),
}));
const title = `Percent of requests that wait at a full replica while another has capacity (${fleet ? name(fleet) : ""})`;
const highest = Math.max(
  1,
  ...panels.flatMap(({ lines }) => lines.flatMap(({ points }) => points.map(({ y }) => y))),
);
const axes = { firstX: 100 * loads[0], mostY: Math.ceil(highest / 5) * 5 };
const svg = linesPlot(title, "load, percent", panels, axes);
writeFileSync(join(docs, "benchmarks/load-balancing.svg"), svg);

const page = `# Benchmark of load balancing

\`\`\`sh
make bench-load-balancing                 # REQUESTS=${requests} SEED=${seed}
\`\`\`

The command writes this page and its plot. The benchmark is a simulation in virtual time: ${requests.toLocaleString("en")} requests for each figure arrive at random times (Poisson) at random API processes, and streams last 4 seconds on average
(exponential). The code of the server selects replicas (\`server/api/upstream/replicas.ts\`). All policies were simulated in one run with the seed ${seed}.

| policy | what an API process does |
| --- | --- |
| own streams | selects the replica with the fewest of its own streams, and waits there (the former policy) |
| two choices | draws two replicas at random, and selects the replica with fewer of its own streams |
| reports | selects the replica with the fewest streams, by its own count and by the reports of replicas within the last second, and waits there |
| reports, free slot first | like \`reports\`, but a full replica rejects the request at once, and the API process tries the next replica; the request waits only if all replicas are full (the present policy) |

![${title}](benchmarks/load-balancing.svg)

${text.join("\n\n")}
`;
writeFileSync(join(docs, "benchmarks-load-balancing.md"), page);
console.log(page);
