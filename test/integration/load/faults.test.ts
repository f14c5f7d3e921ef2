import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { childrenOf } from "../../bench/process-figures.ts";
import { parseEvents } from "../../support/events.ts";
import { eventually } from "../../support/eventually.ts";
import {
  descriptorsOf,
  makeTierFiles,
  routeTo,
  startTierProcess,
  type TierFiles,
  type TierProcess,
} from "../../support/tier-process.ts";

const sentence = "The quick brown fox jumps over the lazy dog, and then it rests under the old tree. ";
/** Hours of speech: whoever speaks it is in the middle of it. */
const long = sentence.repeat(2000);

/** Starting a replica takes half a minute on a machine with much else to do. */
vi.setConfig({ testTimeout: 180_000 });

/** Much speech whose first audio comes soon. */
const many = "Yes. ".repeat(2000);

let files: TierFiles;
let api: TierProcess;
let replicas: TierProcess[];

beforeAll(async () => {
  files = await makeTierFiles();
  files.route({});
  [api, ...replicas] = await Promise.all([
    startTierProcess("api", files),
    startTierProcess("arcana", files),
    startTierProcess("arcana", files),
  ]);
  await useReplicas(...replicas);
});

afterAll(async () => {
  await Promise.all([api, ...replicas].map((tier) => tier.kill("SIGKILL")));
  files.remove();
});

async function routedModels(): Promise<number> {
  const list = (await (await fetch(`${api.url}/v1/models`)).json()) as { data: unknown[] };
  return list.data.length;
}

/** Resolves once these take the requests, and no others. */
async function useReplicas(...tiers: readonly TierProcess[]): Promise<void> {
  files.route({});
  await eventually("the old table is gone", async () => (await routedModels()) === 0);
  files.route({ arcana: routeTo(...tiers.map(({ url }) => url)) });
  await eventually("the API speaks through them", async () => (await say("Hello.")).status === 200);
}

/** A replica that was killed is started anew, elsewhere. */
async function replace(dead: TierProcess): Promise<void> {
  const next = await startTierProcess("arcana", files);
  replicas = replicas.map((tier) => (tier === dead ? next : tier));
  await useReplicas(...replicas);
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

/** Speaks to the end. */
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

async function replicaThatSpeaks(): Promise<TierProcess> {
  let found: TierProcess | undefined;
  await eventually("a replica speaks", async () => {
    for (const tier of replicas) if ((await spokenBy(tier)) > 0) found = tier;
    return found !== undefined;
  });
  return found as TierProcess;
}

/** What a caller saw of the end of an answer that was cut in its middle. */
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
  it.each(cases)("while it speaks as %s: the caller sees: %s", async (accept, seen) => {
    const answer = await ask(long, accept); // the first audio is out
    const victim = await replicaThatSpeaks();
    await victim.kill("SIGKILL");
    expect(await ending(answer)).toBe(seen);
    await eventually("the API counts no stream", async () => (await spokenByApi()) === 0);
    await replace(victim);
  });

  it("between requests, is not noticed by callers while another replica is there", async () => {
    const [victim] = replicas as [TierProcess];
    await victim.kill("SIGKILL");
    const said = await Promise.all(Array.from({ length: 12 }, () => say("Hello.")));
    expect(said.map(({ status }) => status)).toEqual(said.map(() => 200));
    await replace(victim);
  });

  it("and was the only one, is a 503 that says when to come back", async () => {
    const [victim, other] = replicas as [TierProcess, TierProcess];
    await useReplicas(victim);
    await victim.kill("SIGKILL");
    const said = await Promise.all(Array.from({ length: 4 }, () => say("Hello.")));
    for (const each of said) {
      expect(each).toMatchObject({
        status: 503,
        code: "model_unreachable",
        retryAfter: expect.stringMatching(/^\d+$/),
      });
    }
    await eventually("health tells", async () => (await fetch(`${api.url}/health`)).status === 503);
    await useReplicas(other);
    await replace(victim);
  });
});

describe("an engine process that is killed", () => {
  const killEngines = () => {
    for (const { pid } of replicas) for (const engine of childrenOf(pid)) process.kill(engine, "SIGKILL");
  };

  it("between requests, costs none of them", async () => {
    killEngines();
    const said = await Promise.all(Array.from({ length: 8 }, () => say(sentence)));
    expect(said.map(({ status }) => status)).toEqual(said.map(() => 200));
  });

  it.each(["audio/wav", "text/event-stream"])(
    "while it speaks as %s: the stream goes on or breaks off, and never looks whole",
    async (accept) => {
      const hangUp = new AbortController();
      const answer = await ask(long, accept, hangUp.signal);
      killEngines();
      const over = ending(answer);
      const seen = await Promise.race([over, sleep(3000).then(() => "goes on")]);
      hangUp.abort();
      await over;
      expect(["goes on", accept === "audio/wav" ? "broken off" : "error model_failed"]).toContain(seen);
      await eventually("nothing is in flight", async () => (await spokenByApi()) === 0);
      expect((await say("Hello.")).status).toBe(200);
    },
  );
});

describe("a thousand callers who hang up", () => {
  /** Most hang up while they wait for an engine or for its first audio, one in four in mid-speech. */
  const hangUpAfter = async (when: "audio" | number, i: number) => {
    const caller = new AbortController();
    const asked = ask(many, cases[i % 3]?.[0], caller.signal);
    if (when === "audio") await (await asked).body?.getReader().read();
    else await sleep(when);
    caller.abort();
    await asked.catch((cause: unknown) => expect(cause).toHaveProperty("name", "AbortError"));
  };

  it("leave no stream, no process and no descriptor behind", async () => {
    const wave = async () => {
      await Promise.all(Array.from({ length: 40 }, (_, i) => hangUpAfter(i % 4 === 0 ? "audio" : i * 5, i)));
      const tiers = [spokenByApi, ...replicas.map((tier) => () => spokenBy(tier))];
      await eventually("nothing is in flight", async () =>
        (await Promise.all(tiers.map((ask) => ask()))).every((n) => n === 0),
      );
    };
    await wave();
    const all = [api, ...replicas];
    const before = all.map(({ pid }) => ({
      descriptors: descriptorsOf(pid),
      children: childrenOf(pid).length,
    }));
    for (let i = 0; i < 24; i++) await wave();
    await eventually("descriptors are as few as before", () =>
      all.every(({ pid }, i) => descriptorsOf(pid) <= (before[i]?.descriptors ?? 0) + 10),
    );
    expect(all.map(({ pid }) => childrenOf(pid).length)).toEqual(before.map(({ children }) => children));
    expect((await say("Hello.")).status).toBe(200);
  });
});

describe("twice what the models can take", () => {
  it("is served or refused at once with a time to come back, and health stays true", async () => {
    const small = await startTierProcess("arcana", files, { SVC_TTS_MAX_CONCURRENT_STREAMS: "2" });
    await useReplicas(small);
    const said: Said[] = [];
    const until = performance.now() + 3000;
    const caller = async () => {
      while (performance.now() < until) said.push(await say(sentence.repeat(3)));
    };
    await Promise.all([
      ...Array.from({ length: 8 }, caller),
      sleep(1000).then(async () => expect((await fetch(`${api.url}/health`)).status).toBe(200)),
    ]);
    for (const each of said) {
      expect([200, 503]).toContain(each.status);
      if (each.status === 503)
        expect(each).toMatchObject({ code: "saturated", retryAfter: expect.stringMatching(/^\d+$/) });
    }
    expect(new Set(said.map(({ status }) => status))).toEqual(new Set([200, 503]));
    await useReplicas(...replicas);
    await small.kill("SIGTERM");
  });
});
