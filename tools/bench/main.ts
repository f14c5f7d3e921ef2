/** `make bench` measures the server and its parts, and writes docs/benchmarks.md and its plots. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiTier } from "./chapters/api-tier.ts";
import { arcana } from "./chapters/arcana.ts";
import { firstAudio } from "./chapters/first-audio.ts";
import { hostileCallers } from "./chapters/hostile-callers.ts";
import { idleSockets } from "./chapters/idle-sockets.ts";
import { keyCheck } from "./chapters/key-check.ts";
import { loadedSockets } from "./chapters/loaded-sockets.ts";
import { longStream } from "./chapters/long-stream.ts";
import { longTexts } from "./chapters/long-texts.ts";
import { memory } from "./chapters/memory.ts";
import { mists } from "./chapters/mists.ts";
import { naturalVoices } from "./chapters/natural-voices.ts";
import { overload } from "./chapters/overload.ts";
import { peers } from "./chapters/peers.ts";
import { streams } from "./chapters/streams.ts";
import { throughput } from "./chapters/throughput.ts";
import { webSockets } from "./chapters/web-sockets.ts";
import { openEnginesAlone } from "./common/engines-alone.ts";
import { describeMachine } from "./common/machine.ts";
import type { Measurement, TargetResult, Workbench } from "./common/measurement.ts";
import { benchmarksPage, type Chapter, calmSentence, targetsTable } from "./common/page.ts";
import { startServer } from "./common/running-server.ts";

const docs = join(import.meta.dirname, "../../docs");
const plots = join(docs, "benchmarks");
const soak = process.env.SOAK === "1";
const only = process.env.ONLY;

/** The chapters, in the order of the page. */
const measurements: readonly Measurement[] = [
  streams,
  firstAudio,
  mists,
  throughput,
  arcana,
  apiTier,
  webSockets,
  loadedSockets,
  idleSockets(process.env.IDLE_SOCKETS),
  keyCheck,
  longTexts,
  overload,
  hostileCallers,
  peers,
  naturalVoices,
  memory(plots, soak),
  longStream,
];

const machine = describeMachine();
console.log(calmSentence(machine).trim());
const chapters = await measureAll();
report(chapters);

async function measureAll(): Promise<Chapter[]> {
  const selected = measurements.filter(({ name }) => only === undefined || name === only);
  let server: ReturnType<typeof startServer> | undefined;
  let engines: ReturnType<typeof openEnginesAlone> | undefined;
  try {
    return await inTurn(selected, {
      server: () => (server ??= startServer()),
      engines: () => (engines ??= openEnginesAlone()),
    });
  } finally {
    await (await engines)?.close();
    await (await server)?.stop();
  }
}

async function inTurn(selected: readonly Measurement[], workbench: Workbench): Promise<Chapter[]> {
  const measured: Chapter[] = [];
  for (const { name, measure } of selected) {
    console.log(`\n==> ${name}`);
    const finding = await measure(workbench);
    measured.push({ name, finding });
    if (finding.targets.length > 0) console.log(targetsTable(finding.targets));
  }
  return measured;
}

/**
 * Writes the page and its plots. If only one chapter was measured, the function prints the results and does
 * not change the page.
 */
function report(found: readonly Chapter[]): void {
  if (only !== undefined) {
    for (const { name, finding } of found) console.log(`\n## ${name}\n\n${finding.text}`);
    return;
  }
  for (const { finding } of found) writePlots(finding);
  writeFileSync(join(docs, "benchmarks.md"), benchmarksPage(machine, found));
  const targets = found.flatMap(({ finding }) => finding.targets);
  console.log(`\n${targetsTable(targets)}\n\n==> docs/benchmarks.md is written`);
}

function writePlots(finding: TargetResult): void {
  mkdirSync(plots, { recursive: true });
  for (const [name, svg] of Object.entries(finding.plots ?? {})) writeFileSync(join(plots, name), svg);
}
