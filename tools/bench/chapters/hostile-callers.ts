import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { ascending, quantile } from "../../../server/bench/quantiles.ts";
import { residentBytes } from "../../../test/support/processes.ts";
import type { Measurement, TargetRow } from "../common/measurement.ts";
import { markdownTable } from "../common/page.ts";
import { replayText } from "../replay/audio.ts";
import { type ApiAlone, startApiAlone } from "./api-alone.ts";

const mebibyte = 1024 * 1024;
const samples = 40;
const slowSenders = 50;
const manyConnections = 1_000;
const waves = 3;
const largeBodies = 24;
const largeAnswers = 12;
const mostHealthMs = 2_000;
const mostGrowthMiB = 64;
const mostHeldMiB = 1_200;

/**
 * Measures the latency of a client while other clients hold many connections, and the memory for these
 * connections.
 */
export const hostileCallers: Measurement = {
  name: "Hostile callers",
  async measure() {
    const api = await startApiAlone();
    try {
      await sendSpeech(api, largeBody(0), "audio/pcm"); // This load warms up the compiled code.
      const calm = await health(api);
      const slow = await healthBeside(api, slowSenders, 1);
      const before = await healthBeside(api, manyConnections, 1);
      const settled = residentBytes(api.pid);
      const many = await healthBeside(api, manyConnections, waves - 1);
      const grownMiB = (residentBytes(api.pid) - settled) / mebibyte;
      const rows = [
        ["no other client", calm],
        [`${slowSenders} who send a body slowly`, slow],
        [`${manyConnections} connections, first wave`, before],
        [`${manyConnections} connections, later waves`, many],
      ] as const;
      const heldMiB = await large(api);
      return {
        targets: [
          healthTarget(`${slowSenders} slow senders`, slow, calm),
          healthTarget(`${manyConnections} connections`, many, calm),
          memoryTarget(
            `growth of the API tier over ${waves - 1} more waves of ${manyConnections} connections`,
            grownMiB,
            mostGrowthMiB,
          ),
          memoryTarget(
            `memory of the API tier with ${largeBodies} bodies of 15.9 MiB and ${largeAnswers} JSON answers of 19 MB at once`,
            heldMiB,
            mostHeldMiB,
          ),
        ],
        text: `How long \`/health\` takes beside callers who hold connections with a request half sent; ${samples} looks each.

${markdownTable(
  ["beside", "p50", "p99"],
  rows.map(([clients, times]) => [
    clients,
    `${quantile(times, 0.5).toFixed(1)} ms`,
    `${quantile(times, 0.99).toFixed(1)} ms`,
  ]),
)}`,
      };
    } finally {
      await api.stop();
    }
  },
};

/** Returns the response times of /health in ascending order. */
async function health({ url }: ApiAlone): Promise<readonly number[]> {
  const times: number[] = [];
  while (times.length < samples) {
    const startedAt = performance.now();
    const response = await fetch(`${url}/health`);
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`/health responded with status ${response.status}`);
    times.push(performance.now() - startedAt);
  }
  return ascending(times);
}

async function healthBeside(api: ApiAlone, connections: number, times: number): Promise<readonly number[]> {
  const found: number[] = [];
  for (let wave = 0; wave < times; wave++) {
    const sockets = await Promise.all(Array.from({ length: connections }, () => sendHalf(api)));
    found.push(...(await health(api)));
    for (const socket of sockets) socket.destroy();
    await Promise.all(sockets.map((socket) => socket.closed || once(socket, "close")));
  }
  return ascending(found);
}

async function sendHalf({ url, key }: ApiAlone): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  socket.on("error", () => socket.destroy()); // The server may close the connection.
  const headers = `host: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: 1000`;
  socket.write(`POST /v1/svc-tts HTTP/1.1\r\n${headers}\r\n\r\n{`);
  return socket;
}

/** Returns a speech request with this number of bytes of white space. */
function largeBody(bytes: number, seconds = 1): string {
  const text = replayText(seconds, "at once");
  const request = { speaker: "luna", modelId: "arcana", text, audioFormat: "pcm" };
  return `{${" ".repeat(bytes)}${JSON.stringify(request).slice(1)}`;
}

async function sendSpeech({ url, key }: ApiAlone, body: string, accept: string): Promise<void> {
  const response = await fetch(`${url}/v1/svc-tts`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", accept },
    body,
  });
  const answer = await response.text();
  if (![200, 503].includes(response.status))
    throw new Error(`a large speech request received status ${response.status}: ${answer.slice(0, 300)}`);
}

/** Returns the highest memory of the process in MiB during the large requests. */
async function large(api: ApiAlone): Promise<number> {
  let most = residentBytes(api.pid);
  const looking = setInterval(() => {
    most = Math.max(most, residentBytes(api.pid));
  }, 20);
  try {
    const body = largeBody(15.9 * mebibyte);
    await Promise.all(Array.from({ length: largeBodies }, () => sendSpeech(api, body, "audio/pcm")));
    const response = largeBody(0, 400);
    await Promise.all(
      Array.from({ length: largeAnswers }, () => sendSpeech(api, response, "application/json")),
    );
  } finally {
    clearInterval(looking);
  }
  return most / mebibyte;
}

function healthTarget(clients: string, times: readonly number[], calm: readonly number[]): TargetRow {
  const p99 = quantile(times, 0.99);
  const ratio = p99 / quantile(calm, 0.99);
  return {
    what: `/health beside ${clients}, p99`,
    target: `under ${mostHealthMs} ms`,
    measured: `${p99.toFixed(0)} ms (${ratio.toFixed(1)} times that of a calm server)`,
    met: p99 < mostHealthMs,
  };
}

function memoryTarget(what: string, measuredMiB: number, mostMiB: number): TargetRow {
  return {
    what,
    target: `under ${mostMiB} MiB`,
    measured: `${measuredMiB.toFixed(0)} MiB`,
    met: measuredMiB < mostMiB,
  };
}
