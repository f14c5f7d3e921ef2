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
/** A text of several hours, so that a replica is always synthesizing. */
const long = sentence.repeat(2000);

/** A long text whose first audio is available soon. */
const many = "Yes. ".repeat(2000);

let files: TierFiles;
let api: TierProcess;
/** The replicas of arcana, by the fault that they undergo. A dead replica is not restarted. */
let replicas: Record<"speaksAndDies" | "diesIdle" | "stays" | "small", TierProcess>;
/** All replicas that were started, including those of a failed set-up. */
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
  // one after the other, so that each has the whole time limit for its own start
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

/** Resolves when these replicas receive the requests, and no others do. */
async function useReplicas(...tiers: readonly TierProcess[]): Promise<void> {
  files.route({});
  await eventually("the old table is gone", async () => (await routedModels()) === 0);
  files.route({ arcana: routeTo(...tiers.map(({ url }) => url)) });
  await eventually("the API speaks through them", async () => (await say("Hello.")).status === 200);
}

function ask(text: string, accept = "audio/wav", signal?: AbortSignal): Promise<Response> {
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

interface Said {
  readonly status: number;
  readonly code: string | undefined;
  readonly retryAfter: string | null;
}

/** Requests speech, and reads the response to its end. */
async function say(text: string): Promise<Said> {
  const answer = await ask(text);
  const bytes = Buffer.from(await answer.arrayBuffer());
  if (answer.ok) expect(bytes.subarray(0, 4).toString()).toBe("RIFF");
  const problem = answer.ok ? undefined : (JSON.parse(bytes.toString()) as { code: string });
  return { status: answer.status, code: problem?.code, retryAfter: answer.headers.get("retry-after") };
}

async function metric(tier: TierProcess, line: RegExp): Promise<number> {
  const text = await (await fetch(`${tier.url}/metrics`)).text();
  return Number(line.exec(text)?.[1] ?? Number.NaN);
}

const spokenByApi = () => metric(api, /^svc_tts_streams\{model="arcana"\} (\d+)$/m);
const spokenBy = (tier: TierProcess) => metric(tier, /^svc_tts_model_streams (\d+)$/m);

/** Describes how a response that was interrupted ended for its client. */
async function ending(answer: Response): Promise<string> {
  if (answer.status !== 200) return `${answer.status} ${((await answer.json()) as { code: string }).code}`;
  const isEvents = answer.headers.get("content-type") === "text/event-stream";
  try {
    const body = await answer.text();
    if (!isEvents) return "looks whole";
    const last = parseEvents(body).at(-1);
    return `${last?.name} ${(last?.data as { code?: string } | undefined)?.code ?? ""}`;
  } catch {
    return "broken off";
  }
}

const cases: readonly [accept: string, seen: string][] = [
  ["audio/wav", "broken off"],
  ["audio/mpeg", "broken off"],
  ["text/event-stream", "error model_failed"],
];

describe("a model tier that is killed", () => {
  it("during a stream interrupts every response, and then causes a 503 with Retry-After if it was the only one", async () => {
    await useReplicas(replicas.speaksAndDies);
    // the first audio has been sent
    const answers = await Promise.all(cases.map(([accept]) => ask(long, accept)));
    await replicas.speaksAndDies.kill("SIGKILL");
    expect(await Promise.all(answers.map(ending))).toEqual(cases.map(([, seen]) => seen));
    await eventually("the API counts no stream", async () => (await spokenByApi()) === 0);
    for (const said of await Promise.all(Array.from({ length: 4 }, () => say("Hello.")))) {
      expect(said).toMatchObject({
        status: 503,
        code: "model_unreachable",
        retryAfter: expect.stringMatching(/^\d+$/),
      });
    }
    await eventually("health tells", async () => (await fetch(`${api.url}/health`)).status === 503);
  });

  it("between requests is not noticed by clients while another replica exists", async () => {
    await useReplicas(replicas.diesIdle, replicas.stays);
    await replicas.diesIdle.kill("SIGKILL");
    const said = await Promise.all(Array.from({ length: 12 }, () => say("Hello.")));
    expect(said.map(({ status }) => status)).toEqual(said.map(() => 200));
  });
});

describe("an engine process that is killed", () => {
  const killEngines = () => {
    for (const engine of childrenOf(replicas.stays.pid)) killIfThere(engine);
  };

  it("between requests, fails none of them", async () => {
    await useReplicas(replicas.stays);
    killEngines();
    const said = await Promise.all(Array.from({ length: 8 }, () => say(sentence)));
    expect(said.map(({ status }) => status)).toEqual(said.map(() => 200));
  });

  it("during a stream, like each of its successors, interrupts responses and never makes them look complete", async () => {
    await useReplicas(replicas.stays);
    const answers = await Promise.all(cases.map(([accept]) => ask(long, accept)));
    let over = false;
    const seen = Promise.all(answers.map(ending)).finally(() => {
      over = true;
    });
    await eventually("every answer is over", () => {
      killEngines();
      return over;
    });
    expect(await seen).toEqual(cases.map(([, ending]) => ending));
    await eventually("nothing is in flight", async () => (await spokenByApi()) === 0);
    expect((await say("Hello.")).status).toBe(200);
  });
});

describe("hundreds of clients that disconnect", () => {
  const random = seededRandom("hang-ups");
  const callersAtOnce = 40;
  const mostPieces = 40;

  /**
   * Each client disconnects when the wave has received a number of audio chunks that the seed selects: before
   * the request is sent, while it waits for a stream or for its first audio, or during the speech.
   */
  const wave = async () => {
    const listeners = new Set<() => void>();
    let pieces = 0;
    const hear = () => {
      pieces++;
      for (const look of listeners) look();
    };
    const call = async (i: number) => {
      const caller = new AbortController();
      // one client reads until all others have disconnected
      const hangUpAt = i === 0 ? mostPieces : Math.floor(random.next() * mostPieces);
      const look = () => {
        if (pieces >= hangUpAt) caller.abort();
      };
      listeners.add(look);
      const listen = async () => {
        const answer = await ask(many, cases[i % cases.length]?.[0], caller.signal);
        for await (const _piece of answer.body as unknown as AsyncIterable<Uint8Array>) hear();
        return answer.status;
      };
      const listening = listen();
      look();
      const seen = await listening.catch((cause: unknown) => (cause as Error).name);
      listeners.delete(look);
      return seen;
    };
    return Promise.all(Array.from({ length: callersAtOnce }, (_, i) => call(i)));
  };
  const nothingInFlight = () =>
    eventually("nothing is in flight", async () =>
      (await Promise.all([spokenByApi(), spokenBy(replicas.stays)])).every((n) => n === 0),
    );

  it("leave no stream, no process and no file descriptor behind", async () => {
    await useReplicas(replicas.stays);
    const waves = async (count: number) => {
      for (let i = 0; i < count; i++) {
        // a slow machine reduces its streams, and may reject requests that waited long
        for (const seen of await wave()) expect([503, "AbortError"]).toContain(seen);
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
    await eventually("descriptors are as few as before", () =>
      tiers.every(({ pid }, i) => descriptorsOf(pid) <= (before[i]?.descriptors ?? 0) + 10),
    );
    expect(tiers.map(({ pid }) => childrenOf(pid).length)).toEqual(before.map(({ children }) => children));
    expect((await say("Hello.")).status).toBe(200);
  });
});

describe("load above the capacity of the models", () => {
  it("is refused with Retry-After while others are served, is served afterwards, and keeps the health state true", async () => {
    await useReplicas(replicas.small);
    const held = new AbortController();
    const speaking = await Promise.all([1, 2].map(() => ask(long, "audio/wav", held.signal)));
    expect(speaking.map(({ status }) => status)).toEqual([200, 200]);
    const said: Said[] = [];
    const callers = Array.from({ length: 8 }, async () => {
      said.push(await say(sentence));
    });
    await eventually("all but the two that may wait are refused", () => said.length >= 6);
    for (const each of said)
      expect(each).toEqual({ status: 503, code: "saturated", retryAfter: expect.stringMatching(/^\d+$/) });
    expect((await fetch(`${api.url}/health`)).status).toBe(200);
    held.abort();
    await Promise.all(callers);
    await eventually("there is room again", async () => (await say("Hello.")).status === 200);
  });
});

/** A process may have ended since the lookup. */
function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
