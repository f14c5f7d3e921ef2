import { env as names } from "../../../config/contract/names.ts";
import { residentBytes } from "../../../test/support/processes.ts";
import type { Measurement, TargetRow } from "../common/measurement.ts";
import { markdownTable, percent } from "../common/page.ts";
import { type RunningServer, startServer } from "../common/running-server.ts";

const megabyte = 1024 * 1024;
/** A text of about eighteen hours of speech. */
const text = "It was a long story, and it was not over yet. ".repeat(megabyte / 46);
/** After this number of bytes, compilers and garbage collectors are in a steady state. */
const warmBytes = 24 * megabyte;
const wholeBytes = 64 * megabyte;
const mostGrowthMegabytes = 25;

interface Memory {
  readonly api: number;
  /** The memory of the arcana tier and its engines. */
  readonly arcana: number;
}

/** Measures whether the memory of a tier grows during a very long stream. */
export const longStream: Measurement = {
  name: "Memory of a long stream",
  async measure() {
    // The measurement uses the faster generator, because half an hour of speech must pass through the tiers.
    const server = await startServer({ [names.arcanaGenerator]: "flite" });
    try {
      const { early, most } = await listen(server);
      const rows = [
        { tier: "API tier", early: early.api, most: most.api },
        { tier: "arcana tier with its engines", early: early.arcana, most: most.arcana },
      ];
      return { targets: rows.map(target), text: page(rows) };
    } finally {
      await server.stop();
    }
  },
};

async function listen(server: RunningServer): Promise<{ early: Memory; most: Memory }> {
  const disconnect = new AbortController();
  const response = await fetch(`${server.url}/v1/svc-tts`, {
    method: "POST",
    signal: disconnect.signal,
    headers: {
      authorization: `Bearer ${server.key}`,
      "content-type": "application/json",
      accept: "audio/wav",
    },
    body: JSON.stringify({ speaker: "eucalyptus", modelId: "arcana", samplingRate: 16_000, text }),
  });
  if (!response.ok)
    throw new Error(`the speech request received status ${response.status}: ${await response.text()}`);
  let [received, measuredAt] = [0, 0];
  let early: Memory | undefined;
  let most: Memory = { api: 0, arcana: 0 };
  for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
    received += piece.length;
    if (received - measuredAt < megabyte) continue;
    measuredAt = received;
    const now = memoryOf(server);
    if (received > warmBytes) early ??= now;
    most = { api: Math.max(most.api, now.api), arcana: Math.max(most.arcana, now.arcana) };
    if (received > wholeBytes) break;
  }
  disconnect.abort();
  if (early === undefined) throw new Error("the stream ended before the warm-up was complete");
  return { early, most };
}

function memoryOf({ pids }: RunningServer): Memory {
  const arcana = [pids.arcana, ...pids.arcanaEngines];
  return {
    api: residentBytes(pids.api),
    arcana: arcana.reduce((sum, pid) => sum + residentBytes(pid), 0),
  };
}

interface Row {
  readonly tier: string;
  readonly early: number;
  readonly most: number;
}

function target({ tier, early, most }: Row): TargetRow {
  const grown = (most - early) / megabyte;
  return {
    what: `growth of the ${tier} while ${(wholeBytes - warmBytes) / megabyte} MiB of one stream pass through`,
    target: `under ${mostGrowthMegabytes} MiB`,
    measured: `${grown.toFixed(1)} MiB (${percent(grown / ((wholeBytes - warmBytes) / megabyte))} of what passed)`,
    met: grown < mostGrowthMegabytes,
  };
}

function page(rows: readonly Row[]): string {
  const cells = rows.map(({ tier, early, most }) => [
    tier,
    `${(early / megabyte).toFixed(0)} MiB`,
    `${(most / megabyte).toFixed(0)} MiB`,
  ]);
  return `A text of a megabyte, read as WAV as fast as it comes; resident memory after ${warmBytes / megabyte} MiB of audio, and the most up to ${wholeBytes / megabyte} MiB.

${markdownTable(["process", `after ${warmBytes / megabyte} MiB`, "most"], cells)}`;
}
