import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { unsentBytes } from "../../../server/http/send-queues.ts";
import type { ModelTierOptions } from "../../../server/model/settings.ts";
import type { RunningTier } from "../../../server/model/tier.ts";
import { eventually, eventuallyPasses } from "../../support/eventually.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";
import { folderOfTests } from "../../support/folder.ts";
import { refusesConnections, sampleOf } from "../../support/server/api-tier.ts";
import { framesOf, hear, internalToken, invoke, modelTier } from "../../support/server/model-tier.ts";
import { VoicesFolder } from "../../support/voices/folder.ts";
import { heldRules } from "../contract/held-rules.ts";

const rules = heldRules(import.meta.filename);
const folder = folderOfTests("model-tier");
const sentence = "The quick brown fox jumps over the lazy dog, and then it rests under the old tree. ";
const silence = { repetitionPenalty: 1.5, temperature: 0, topP: 1, maxTokens: 1200 };

async function get(tier: RunningTier, path: string): Promise<[number, string]> {
  const response = await fetch(`${tier.url}${path}`);
  return [response.status, await response.text()];
}

describe("the mist tier", () => {
  let tier: RunningTier;
  beforeAll(async () => {
    tier = await modelTier({ maxConcurrentStreams: 4 });
  });
  afterAll(() => tier.stop());

  test("synthesizes English with a timestamp for every written word, in order and within the audio", async () => {
    const text = "Dr. Smith paid $5, in 1999 — really! U.S. prices (all) rose.";
    const { samples, rate, words, engine } = await hear(tier.url, { text });
    expect(engine).toBe("flite");
    expect(words.map(({ word }) => word)).toEqual(
      "Dr Smith paid $5 in 1999 really U.S. prices all rose".split(" "),
    );
    words.forEach(({ start, end }, index) => {
      expect(start).toBeGreaterThanOrEqual((words[index - 1]?.end ?? 0) - 0.001);
      expect(end).toBeGreaterThan(start);
    });
    expect(words.at(-1)?.end).toBeLessThanOrEqual(samples.length / rate + 0.001);
  });

  test.each([" … ", "👍", "<0>", "日本語"])(
    "text without a pronounceable word (%j) is 100 ms of silence",
    async (text) => {
      const { samples, rate, words } = await hear(tier.url, { text, pauseBetweenBrackets: true });
      expect({ rate, words }).toEqual({ rate: 16_000, words: [] });
      expect(samples).toEqual(new Int16Array(1600));
    },
  );

  test("makes a pause without text exactly as long as requested", async () => {
    const { samples } = await hear(tier.url, { text: "<30>", pauseBetweenBrackets: true });
    expect(samples).toEqual(new Int16Array(480));
  });

  test("reports its load with every response", async () => {
    // The tier may release the slot of the previous response a moment after its end.
    await eventuallyPasses(async () => {
      const response = await invoke(tier.url, {});
      await response.arrayBuffer();
      expect(response.headers.get("endpoint-load-metrics")).toMatch(
        /^TEXT application_utilization=0\.250, named_metrics\.streams=1, named_metrics\.capacity=4, named_metrics\.queue=0$/,
      );
    });
  });

  test.each([
    ["a body that is not an object", "7", "invalid_request", ""],
    ["malformed JSON", "{", "malformed_json", undefined],
    ["a field of a wrong type", '{"modelId":"mist","text":7}', "invalid_request", ""],
  ])("rejects %s with problem details", async (_what, body, code, pointer) => {
    const response = await fetch(`${tier.url}/invocations`, {
      method: "POST",
      headers: { authorization: `Bearer ${internalToken}`, "content-type": "application/json" },
      body,
    });
    expect(response.status).toBe(400);
    expect(response.headers.get("content-type")).toContain("application/problem+json");
    const problem = (await response.json()) as { code: string; errors?: { pointer: string }[] };
    expect(problem.code).toBe(code);
    if (pointer !== undefined) expect(problem.errors?.map((error) => error.pointer)).toContain(pointer);
  });

  test.each([
    [{ speaker: "no-such-voice" }, "/speaker"],
    [{ speaker: "luna" }, "/speaker"],
    [{ lang: "deu" }, "/lang"],
    [{ modelId: "arcana" as const, speaker: "luna" }, "/modelId"],
    [{ stretch: 0 }, "/stretch"],
    [{ text: "{q!}", phonemizeBetweenBrackets: true }, "/text"],
    [{ text: "none", inlineStretch: [2] }, "/inlineSpeedAlpha"],
  ])("rejects %j, and the error names the field", async (change, pointer) => {
    const response = await invoke(tier.url, change);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ code: "invalid_request", errors: [{ pointer }] });
  });

  test("rejects a long text that has an error at its end before it sends audio", async () => {
    const text = `${"Hello. ".repeat(20_000)}<60001>`;
    const response = await invoke(tier.url, { text, pauseBetweenBrackets: true });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ errors: [{ pointer: "/text" }] });
  });

  test("counts requests by route, and counts requests to unknown routes together", async () => {
    await fetch(`${tier.url}/nowhere?secret=1`);
    const [, text] = await get(tier, "/metrics");
    const labelled = (...labels: string[]) =>
      text.split("\n").some((line) => labels.every((label) => line.includes(label)));
    expect(labelled("http_requests_total{", 'endpoint="/invocations"', 'http_status="200"')).toBe(true);
    expect(labelled("http_errors_total{", 'error_message="invalid_request"')).toBe(true);
    expect(labelled("http_errors_total{", 'endpoint="other"', 'error_message="not_found"')).toBe(true);
  });

  test("requires the internal token, and gives each rejected request the same error", async () => {
    const bodies = new Set<string>();
    const wrong = [undefined, "Bearer wrong", `Basic ${internalToken}`, `Bearer ${internalToken}x`];
    for (const authorization of wrong) {
      const response = await fetch(`${tier.url}/invocations`, {
        method: "POST",
        headers: { "content-type": "application/json", ...(authorization && { authorization }) },
        body: "{", // The body must not be parsed, or the status would be 400.
      });
      expect(response.status).toBe(401);
      expect(response.headers.get("www-authenticate")).toBe("Bearer");
      bodies.add(((await response.json()) as { detail: string }).detail);
    }
    expect(bodies.size).toBe(1);
  });

  test("immediately frees the slot of a client that disconnects", async () => {
    for (let round = 0; round < 12; round++) {
      const hangUp = new AbortController();
      const response = await invoke(tier.url, { text: sentence.repeat(20) }, hangUp.signal);
      expect(response.status).toBe(200);
      const frames = framesOf(response);
      await frames.next();
      hangUp.abort();
      await frames.next().catch(() => undefined); // The closed connection is expected.
    }
    await expect.poll(() => sampleOf(tier.url, "svc_tts_model_streams")).toBe(0);
    expect((await hear(tier.url, {})).words).toHaveLength(1);
  });

  test("pauses the engine for a client that does not read, without a delay for other streams", async () => {
    const unread = await invoke(tier.url, { text: sentence.repeat(500) });
    const { samples } = await hear(tier.url, { text: sentence });
    expect(samples.length).toBeGreaterThan(16_000);
    const speaking = async () => (await sampleOf(tier.url, "svc_tts_model_streams")) === 1;
    await eventually("the unread stream to be the only one", speaking);
    await unread.body?.cancel();
    await expect.poll(() => sampleOf(tier.url, "svc_tts_model_streams")).toBe(0);
  });

  test("responds to probes while every engine process is busy", async () => {
    const hangUp = new AbortController();
    let ended = 0;
    const read = async () => {
      const response = await invoke(tier.url, { text: sentence.repeat(2_000) }, hangUp.signal);
      for await (const _frame of framesOf(response));
      ended++;
    };
    const busy = Array.from({ length: 4 }, read);
    await eventually("four streams", async () => (await sampleOf(tier.url, "svc_tts_model_streams")) === 4);
    for (let round = 0; round < 5; round++) expect(await get(tier, "/readyz")).toEqual([200, "ok"]);
    expect(ended).toBe(0);
    hangUp.abort();
    for (const { status } of await Promise.allSettled(busy)) expect(status).toBe("rejected");
    await eventually("no stream", async () => (await sampleOf(tier.url, "svc_tts_model_streams")) === 0);
  });
});

describe("the arcana tier", () => {
  let tier: RunningTier;
  beforeAll(async () => {
    tier = await modelTier({ tier: "arcana" });
  });
  afterAll(() => tier.stop());

  test("synthesizes a word of millions of letters or punctuation marks without the death of an engine", async () => {
    for (const text of [
      "a".repeat(5_000_000),
      `hello${"!".repeat(5_000_000)}`,
      `${"(".repeat(5_000_000)}hello`,
    ]) {
      const answer = await invoke(tier.url, { modelId: "arcana", speaker: "luna", text });
      expect(answer.status).toBe(200);
      const kinds = [];
      for await (const frame of framesOf(answer)) {
        kinds.push(frame.kind);
        if (kinds.length > 100) break;
      }
      expect(kinds).toContain("audio");
      expect(kinds).not.toContain("error");
    }
  });

  test("responds to probes while it reads millions of punctuation marks without a word", async () => {
    const text = ". ".repeat(1_000_000);
    const long = invoke(tier.url, { modelId: "arcana", speaker: "luna", text });
    let probes = 0;
    let over = false;
    const watched = long.then(() => {
      over = true;
    });
    for (; !over; probes++) expect(await get(tier, "/readyz")).toEqual([200, "ok"]);
    expect(probes).toBeGreaterThan(10); // A tier that reads the text without a pause would respond to one probe.
    await watched;
    expect((await long).status).toBe(200);
    await (await long).body?.cancel();
  });
});

/** Starts a tier for a single test, which stops at the end of the test. */
async function ownTier(options: Partial<ModelTierOptions>): Promise<RunningTier> {
  const tier = await modelTier(options);
  onTestFinished(() => tier.stop());
  return tier;
}

/** Occupies a slot with an unread stream until the test ends. */
async function hold(tier: RunningTier): Promise<Response> {
  const response = await invoke(tier.url, { text: sentence.repeat(500) });
  onTestFinished(() => response.body?.cancel());
  return response;
}

const waiting = (tier: RunningTier) => sampleOf(tier.url, "svc_tts_model_queue_depth");

test.each([
  ["mini", 80],
  ["flite", 82],
] as const)(
  "max_tokens limits the audio of a phrase: generator %s uses %d tokens for a second",
  async (generator, rate) => {
    const tier = await ownTier({ tier: "arcana", generator });
    const text = "one two three four five six seven eight nine ten eleven twelve";
    const arcana = { modelId: "arcana", speaker: "moss", text } as const;
    const whole = await hear(tier.url, { ...arcana, sampling: silence });
    const cut = await hear(tier.url, { ...arcana, sampling: { ...silence, maxTokens: 200 } });
    expect(whole.samples.length / whole.rate).toBeGreaterThan(3);
    expect(cut.samples.length).toBe(Math.round((200 / rate) * cut.rate));
    expect(cut.words.at(-1)?.end).toBeLessThanOrEqual(200 / rate);
    expect(cut.words.length).toBeLessThan(12);
  },
);

test("requests above the stream limit wait in the queue, and requests above the queue limit are rejected with Retry-After", async () => {
  const tier = await ownTier({ maxConcurrentStreams: 2 });
  const held = [await hold(tier), await hold(tier)];
  const queued = [hear(tier.url, {}), hear(tier.url, {})];
  await eventually("two requests in the queue", async () => (await waiting(tier)) === 2);
  const rejected = await invoke(tier.url, {});
  expect(rejected.status).toBe(503);
  expect(Number(rejected.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  expect(await rejected.json()).toMatchObject({ code: "saturated" });
  await held[0]?.body?.cancel();
  for (const { words } of await Promise.all(queued)) expect(words).toHaveLength(1);
});

test("a queued request is rejected exactly at its deadline", async () => {
  const clock = new FakeClock();
  const tier = await ownTier({ maxConcurrentStreams: 1, queueDeadlineMs: 5_000, clock });
  await hold(tier);
  const late = invoke(tier.url, {});
  await eventually("a request in the queue", async () => (await waiting(tier)) === 1);
  await clock.advance(4_999);
  expect(await waiting(tier)).toBe(1);
  await clock.advance(1);
  expect(await (await late).json()).toMatchObject({ status: 503, code: "saturated" });
  expect(await waiting(tier)).toBe(0);
  rules.exercised("admission");
});

test("a queued request leaves the queue when its client disconnects, and the next request gets the slot", async () => {
  const clock = new FakeClock(); // This clock never moves, so no deadline passes.
  const tier = await ownTier({ maxConcurrentStreams: 1, clock });
  const held = await hold(tier);
  const hangUp = new AbortController();
  const disconnected = invoke(tier.url, {}, hangUp.signal).catch((error: Error) => error.name);
  await eventually("a request in the queue", async () => (await waiting(tier)) === 1);
  hangUp.abort();
  expect(await disconnected).toBe("AbortError");
  await eventually("an empty queue", async () => (await waiting(tier)) === 0);
  const next = hear(tier.url, {});
  await eventually("the next request in the queue", async () => (await waiting(tier)) === 1);
  await held.body?.cancel();
  expect((await next).words).toHaveLength(1);
});

test("a draining tier finishes its streams and rejects new requests", async () => {
  const tier = await modelTier({ clock: new FakeClock() }); // The clock never moves, so the drain has no time limit.
  const { samples: whole } = await hear(tier.url, { text: sentence.repeat(10) });
  const response = await invoke(tier.url, { text: sentence.repeat(10) });
  const stopping = tier.stop();
  expect((await get(tier, "/ready"))[0]).toBe(503);
  expect(await get(tier, "/readyz")).toEqual([200, "ok"]);
  expect((await invoke(tier.url, {})).status).toBe(503);
  let samples = 0;
  let ending = "";
  for await (const frame of framesOf(response)) {
    if (frame.kind === "audio") samples += frame.samples.length;
    ending = frame.kind;
  }
  expect({ samples, ending }).toEqual({ samples: whole.length, ending: "end" });
  await stopping;
  await expect(fetch(`${tier.url}/ping`)).rejects.toThrow();
});

test("a draining tier serves a request that waits for a mounted model", async () => {
  const voices = new VoicesFolder();
  onTestFinished(() => voices.delete());
  voices.piper("en_GB-nora-low");
  const tier = await modelTier({
    clock: new FakeClock(), // This clock never moves, so the drain has no time limit.
    voices: { folder: voices.path, providers: ["cpu"], processes: 1, streams: 1 },
  });
  const nora = { speaker: "en_gb-nora-low", text: sentence } as const;
  const whole = await eventually("the mounted voice", () => hear(tier.url, nora));
  const held = await invoke(tier.url, { ...nora, text: sentence.repeat(2_000) });
  const queued = hear(tier.url, nora);
  await eventually("a request that waits for the model", async () => (await waiting(tier)) === 1);
  const stopping = tier.stop();
  await held.body?.cancel(); // The only stream ends, and the waiting request is the last one.
  expect((await queued).samples.length).toBe(whole.samples.length);
  await stopping;
});

test("a draining tier does not wait for clients that read no data after the end of the drain", async () => {
  const clock = new FakeClock();
  const tier = await modelTier({ drainSeconds: 50, clock });
  const response = await invoke(tier.url, { text: sentence.repeat(2_000) });
  // Between two pieces of audio the queue does not grow either, so it must have the same length for a while.
  const readings: number[] = [];
  await eventually("a send queue that is full", async () => {
    readings.push(await unsentBytes(Number(new URL(tier.url).port)));
    const [first = 0, ...others] = readings.slice(-10);
    return first > 100_000 && others.length === 9 && others.every((bytes) => bytes === first);
  });
  const stopping = tier.stop();
  await clock.advance(51_000);
  await stopping;
  await expect(response.arrayBuffer()).rejects.toThrow();
});

test("a draining tier waits until the kernel has sent its responses", async () => {
  const clock = new FakeClock();
  const tier = await modelTier({ drainSeconds: 50, clock });
  const port = Number(new URL(tier.url).port);
  // The client does not read, so the kernel keeps most of the response in its send queue.
  const response = await invoke(tier.url, { text: sentence.repeat(8) });
  await eventually(
    "the end of the synthesis",
    async () => (await sampleOf(tier.url, "svc_tts_model_streams")) === 0,
  );
  expect(await unsentBytes(port)).toBeGreaterThan(100_000);
  let isStopped = false;
  const stopping = tier.stop().then(() => {
    isStopped = true;
  });
  await eventually("the tier to close its port", () => refusesConnections(tier.url));
  // The server checks the kernel's send queues every 100 ms, and ends after thirty seconds without progress.
  const checkOnce = async () => {
    await eventually("the timer of the next check", () => clock.timers > 0);
    await clock.advance(100);
  };
  for (let check = 0; check < 200; check++) await checkOnce();
  expect(isStopped).toBe(false);
  let ending = "";
  for await (const { kind } of framesOf(response)) ending = kind;
  expect(ending).toBe("end");
  await eventually("the tier to stop", async () => {
    await clock.advance(100);
    return isStopped;
  });
  await stopping;
  expect(await unsentBytes(port)).toBe(0);
});

test("a stream that outlasts the drain is interrupted at the end of the drain, and does not look complete", async () => {
  const clock = new FakeClock();
  const tier = await modelTier({ drainSeconds: 50, clock });
  const frames = framesOf(await invoke(tier.url, { text: sentence.repeat(2_000) }));
  await frames.next();
  const stopping = tier.stop();
  await clock.advance(49_999);
  expect(await sampleOf(tier.url, "svc_tts_model_streams")).toBe(1);
  await clock.advance(1);
  const last = async () => {
    let kind = "";
    for await (const frame of frames) kind = frame.kind;
    return kind;
  };
  // The tier sends an error frame if the connection still accepts frames. Otherwise it closes the connection.
  expect(await last().catch(() => "cut")).toMatch(/^(error|cut)$/);
  await eventually("the tier to stop", async () => {
    await clock.advance(100);
    return Promise.race([stopping.then(() => true), settle().then(() => false)]);
  });
});

test("a tier reads its tokens again when the file changes, and rejects every request without the file", async () => {
  const tier = await ownTier({ tokens: { kind: "folder", path: folder } });
  const status = async () => (await invoke(tier.url, { text: "" })).status;
  expect(await status()).toBe(401);
  writeFileSync(join(folder, "accepted"), `an-older-one\n${internalToken}\n`);
  await expect.poll(status).toBe(200);
  writeFileSync(join(folder, "accepted"), "an-older-one\n");
  await expect.poll(status).toBe(401);
});
