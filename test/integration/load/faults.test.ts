import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { childrenOf } from "../../support/processes.ts";
import { seededRandom } from "../../support/seed.ts";
import { routeTo } from "../../support/server/api-tier.ts";
import { parseEvents } from "../../support/server/events.ts";
import {
  descriptorsOf,
  makeTierFiles,
  startTierProcess,
  type TierFiles,
  type TierProcess,
} from "../../support/server/tier-process.ts";

const sentence = "The quick brown fox jumps over the lazy dog, and then it rests under the old tree. ";
/** A text with several hours of speech, so that its synthesis does not end during a test. */
const long = sentence.repeat(2000);

/** A long text of short sentences, so that the first audio is available soon. */
const many = "Yes. ".repeat(2000);

let files: TierFiles;
let api: TierProcess;
/** The replicas of arcana, by their fault. A killed replica is not restarted. */
let replicas: Record<"speaksAndDies" | "diesIdle" | "stays" | "small", TierProcess>;
/** All processes that were started, also by a set-up that failed. */
const running: TierProcess[] = [];

beforeAll(async () => {
  files = await makeTierFiles();
  files.route({});
  const run = async (starting: Promise<TierProcess>) => {
    const tier = await starting;
    running.push(tier);
    return tier;
  };
  const start = (environment = {}) => run(startTierProcess("arcana", files, environment));
  // The replicas start one after the other, so that each start has the whole time limit.
  replicas = {
    speaksAndDies: await start(),
    diesIdle: await start(),
    stays: await start(),
    small: await start({ SVC_TTS_MAX_CONCURRENT_STREAMS: "2" }),
  };
  api = await run(startTierProcess("api", files));
});

afterAll(async () => {
  await Promise.all(running.map((tier) => tier.kill("SIGKILL")));
  files.remove();
});

async function routedModels(): Promise<number> {
  const list = (await (await fetch(`${api.url}/v1/models`)).json()) as { data: unknown[] };
  return list.data.length;
}

/** Changes the routing table, and resolves when the API tier uses only the given replicas. */
async function useReplicas(...tiers: readonly TierProcess[]): Promise<void> {
  files.route({});
  await eventually("the API tier to read the empty table", async () => (await routedModels()) === 0);
  files.route({ arcana: routeTo(...tiers.map(({ url }) => url)) });
  await eventually("the API tier to use the replicas", async () => (await say("Hello.")).status === 200);
}

function send(text: string, accept = "audio/wav", signal?: AbortSignal): Promise<Response> {
  return fetch(`${api.url}/v1/svc-tts`, {
    method: "POST",
    headers: { authorization: `Bearer ${files.key}`, "content-type": "application/json", accept },
    body: JSON.stringify({
      speaker: "luna",
      modelId: "arcana",
      text,
      audioFormat: "mp3",
    }),
    ...(signal && { signal }),
  });
}

interface Result {
  readonly status: number;
  readonly code: string | undefined;
  readonly retryAfter: string | null;
}

/** Requests speech, and reads the response to its end. */
async function say(text: string): Promise<Result> {
  const answer = await send(text);
  const bytes = Buffer.from(await answer.arrayBuffer());
  if (answer.ok) expect(bytes.subarray(0, 4).toString()).toBe("RIFF");
  const problem = answer.ok ? undefined : (JSON.parse(bytes.toString()) as { code: string });
  return { status: answer.status, code: problem?.code, retryAfter: answer.headers.get("retry-after") };
}

async function metric(tier: TierProcess, line: RegExp): Promise<number> {
  const text = await (await fetch(`${tier.url}/metrics`)).text();
  return Number(line.exec(text)?.[1] ?? Number.NaN);
}

const streamsOfApi = () => metric(api, /^svc_tts_streams\{model="arcana"\} (\d+)$/m);
const streamsOf = (tier: TierProcess) => metric(tier, /^svc_tts_model_streams (\d+)$/m);

/** Reads an interrupted response, and describes how it ends for the client. */
async function ending(answer: Response): Promise<string> {
  if (answer.status !== 200) return `${answer.status} ${((await answer.json()) as { code: string }).code}`;
  const isEvents = answer.headers.get("content-type") === "text/event-stream";
  try {
    const body = await answer.text();
    if (!isEvents) return "complete";
    const last = parseEvents(body).at(-1);
    return `${last?.name} ${(last?.data as { code?: string } | undefined)?.code ?? ""}`;
  } catch {
    return "aborted";
  }
}

const cases: readonly [accept: string, ending: string][] = [
  ["audio/wav", "aborted"],
  ["audio/mpeg", "aborted"],
  ["text/event-stream", "error model_failed"],
];

describe("a model tier that is killed", () => {
  it("aborts its responses, and causes a 503 with Retry-After if it was the only replica", async () => {
    await useReplicas(replicas.speaksAndDies);
    // A response starts when its first audio is available.
    const answers = await Promise.all(cases.map(([accept]) => send(long, accept)));
    await replicas.speaksAndDies.kill("SIGKILL");
    expect(await Promise.all(answers.map(ending))).toEqual(cases.map(([, ending]) => ending));
    await eventually("the API tier to count no stream", async () => (await streamsOfApi()) === 0);
    for (const result of await Promise.all(Array.from({ length: 4 }, () => say("Hello.")))) {
      expect(result).toMatchObject({
        status: 503,
        code: "model_unreachable",
        retryAfter: expect.stringMatching(/^\d+$/),
      });
    }
    await eventually("/health to return 503", async () => (await fetch(`${api.url}/health`)).status === 503);
  });

  it("fails no request if it was idle and another replica exists", async () => {
    await useReplicas(replicas.diesIdle, replicas.stays);
    await replicas.diesIdle.kill("SIGKILL");
    const results = await Promise.all(Array.from({ length: 12 }, () => say("Hello.")));
    expect(results.map(({ status }) => status)).toEqual(results.map(() => 200));
  });
});

describe("an engine process that is killed", () => {
  const killEngines = () => {
    for (const engine of childrenOf(replicas.stays.pid)) killIfRunning(engine);
  };

  it("fails no request if it was idle", async () => {
    await useReplicas(replicas.stays);
    killEngines();
    const results = await Promise.all(Array.from({ length: 8 }, () => say(sentence)));
    expect(results.map(({ status }) => status)).toEqual(results.map(() => 200));
  });

  it("aborts its responses if each replacement is killed too, and no response looks complete", async () => {
    await useReplicas(replicas.stays);
    const answers = await Promise.all(cases.map(([accept]) => send(long, accept)));
    let over = false;
    const endings = Promise.all(answers.map(ending)).finally(() => {
      over = true;
    });
    await eventually("the end of every response", () => {
      killEngines();
      return over;
    });
    expect(await endings).toEqual(cases.map(([, ending]) => ending));
    await eventually("no stream in flight", async () => (await streamsOfApi()) === 0);
    expect((await say("Hello.")).status).toBe(200);
  });
});

describe("hundreds of clients that disconnect", () => {
  const random = seededRandom("hang-ups");
  const clientsPerWave = 40;
  const mostPieces = 40;

  /**
   * Starts many clients. Each client disconnects when all clients together have received a number of audio
   * chunks, which the seed selects. Clients therefore disconnect at every stage of a request: before they
   * send it, while they wait for a stream or for the first audio, and during the speech.
   */
  const wave = async () => {
    const checks = new Set<() => void>();
    let pieces = 0;
    const countPiece = () => {
      pieces++;
      for (const check of checks) check();
    };
    const call = async (i: number) => {
      const client = new AbortController();
      // The first client reads until all others have disconnected.
      const hangUpAt = i === 0 ? mostPieces : Math.floor(random.next() * mostPieces);
      const check = () => {
        if (pieces >= hangUpAt) client.abort();
      };
      checks.add(check);
      const read = async () => {
        const answer = await send(many, cases[i % cases.length]?.[0], client.signal);
        for await (const _piece of answer.body as unknown as AsyncIterable<Uint8Array>) countPiece();
        return answer.status;
      };
      const reading = read();
      check();
      const result = await reading.catch((cause: unknown) => (cause as Error).name);
      checks.delete(check);
      return result;
    };
    return Promise.all(Array.from({ length: clientsPerWave }, (_, i) => call(i)));
  };
  const nothingInFlight = () =>
    eventually("no stream in flight", async () =>
      (await Promise.all([streamsOfApi(), streamsOf(replicas.stays)])).every((n) => n === 0),
    );

  it("leave no stream, no process and no file descriptor behind", async () => {
    await useReplicas(replicas.stays);
    const waves = async (count: number) => {
      for (let i = 0; i < count; i++) {
        // On a slow machine, a replica reduces its stream limit, and may reject requests that waited long.
        for (const result of await wave()) expect([503, "AbortError"]).toContain(result);
        await nothingInFlight();
      }
    };
    await waves(1);
    const tiers = [api, replicas.stays];
    const before = tiers.map(({ pid }) => ({
      descriptors: descriptorsOf(pid),
      children: childrenOf(pid).length,
    }));
    await waves(5);
    await eventually("the tiers to close their file descriptors", () =>
      tiers.every(({ pid }, i) => descriptorsOf(pid) <= (before[i]?.descriptors ?? 0) + 10),
    );
    expect(tiers.map(({ pid }) => childrenOf(pid).length)).toEqual(before.map(({ children }) => children));
    expect((await say("Hello.")).status).toBe(200);
  });
});

describe("load above the capacity of the models", () => {
  it("is rejected with Retry-After while other streams continue, and does not make /health fail", async () => {
    await useReplicas(replicas.small);
    const held = new AbortController();
    const speaking = await Promise.all([1, 2].map(() => send(long, "audio/wav", held.signal)));
    expect(speaking.map(({ status }) => status)).toEqual([200, 200]);
    const results: Result[] = [];
    const clients = Array.from({ length: 8 }, async () => {
      results.push(await say(sentence));
    });
    await eventually("six rejected requests, while two wait in the queue", () => results.length >= 6);
    for (const result of results)
      expect(result).toEqual({ status: 503, code: "saturated", retryAfter: expect.stringMatching(/^\d+$/) });
    expect((await fetch(`${api.url}/health`)).status).toBe(200);
    held.abort();
    await Promise.all(clients);
    await eventually("a successful request", async () => (await say("Hello.")).status === 200);
  });
});

/** Kills the process, which may have ended since it was listed. */
function killIfRunning(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
