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
    "text without a word that it can say (%j) is a moment of silence",
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
    // the response was read, but its slot may be released a moment later
    await eventuallyPasses(async () => {
      const response = await invoke(tier.url, {});
      await response.arrayBuffer();
      expect(response.headers.get("endpoint-load-metrics")).toMatch(
        /^TEXT application_utilization=0\.250, named_metrics\.streams=1, named_metrics\.capacity=4, named_metrics\.queue=0$/,
      );
    });
  });

  test.each([
    ["a body that is no object", "7", "invalid_request", ""],
    ["no JSON", "{", "malformed_json", undefined],
    ["a wrong type", '{"modelId":"mist","text":7}', "invalid_request", ""],
  ])("refuses %s with problem details", async (_what, body, code, pointer) => {
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
  ])("refuses %j and names the field", async (change, pointer) => {
    const response = await invoke(tier.url, change);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ code: "invalid_request", errors: [{ pointer }] });
  });

  test("rejects a long text with an error at its end before any audio", async () => {
    const text = `${"Hello. ".repeat(20_000)}<60001>`;
    const response = await invoke(tier.url, { text, pauseBetweenBrackets: true });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ errors: [{ pointer: "/text" }] });
  });

  test("counts requests by route, and those of unknown routes together", async () => {
    await fetch(`${tier.url}/nowhere?secret=1`);
    const [, text] = await get(tier, "/metrics");
    const labelled = (...labels: string[]) =>
      text.split("\n").some((line) => labels.every((label) => line.includes(label)));
    expect(labelled("http_requests_total{", 'endpoint="/invocations"', 'http_status="200"')).toBe(true);
    expect(labelled("http_errors_total{", 'error_message="invalid_request"')).toBe(true);
    expect(labelled("http_errors_total{", 'endpoint="other"', 'error_message="not_found"')).toBe(true);
  });

  test("requires the internal token, and does not say why it refuses", async () => {
    const bodies = new Set<string>();
    const wrong = [undefined, "Bearer wrong", `Basic ${internalToken}`, `Bearer ${internalToken}x`];
    for (const authorization of wrong) {
      const response = await fetch(`${tier.url}/invocations`, {
        method: "POST",
        headers: { "content-type": "application/json", ...(authorization && { authorization }) },
        body: "{", // the body must not be parsed, or the status would be 400
      });
      expect(response.status).toBe(401);
      expect(response.headers.get("www-authenticate")).toBe("Bearer");
      bodies.add(((await response.json()) as { detail: string }).detail);
    }
    expect(bodies.size).toBe(1);
  });

  test("frees the slot of a client that disconnects at once", async () => {
    for (let round = 0; round < 12; round++) {
      const hangUp = new AbortController();
      const response = await invoke(tier.url, { text: sentence.repeat(20) }, hangUp.signal);
      expect(response.status).toBe(200);
      const frames = framesOf(response);
      await frames.next();
      hangUp.abort();
      await frames.next().catch(() => undefined); // the closed connection is expected
    }
    await expect.poll(() => sampleOf(tier.url, "svc_tts_model_streams")).toBe(0);
    expect((await hear(tier.url, {})).words).toHaveLength(1);
  });

  test("holds the engine back for a client that does not read, without delaying other streams", async () => {
    const lazy = await invoke(tier.url, { text: sentence.repeat(500) });
    const { samples } = await hear(tier.url, { text: sentence });
    expect(samples.length).toBeGreaterThan(16_000);
    const speaking = async () => (await sampleOf(tier.url, "svc_tts_model_streams")) === 1;
    await eventually("the unread one alone is unfinished", speaking);
    await lazy.body?.cancel();
    await expect.poll(() => sampleOf(tier.url, "svc_tts_model_streams")).toBe(0);
  });

  test("answers probes while every engine process is busy", async () => {
    const hangUp = new AbortController();
    let ended = 0;
    const listen = async () => {
      const response = await invoke(tier.url, { text: sentence.repeat(2_000) }, hangUp.signal);
      for await (const _frame of framesOf(response));
      ended++;
    };
    const busy = Array.from({ length: 4 }, listen);
    await eventually("all speak", async () => (await sampleOf(tier.url, "svc_tts_model_streams")) === 4);
    for (let round = 0; round < 5; round++) expect(await get(tier, "/readyz")).toEqual([200, "ok"]);
    expect(ended).toBe(0);
    hangUp.abort();
    for (const { status } of await Promise.allSettled(busy)) expect(status).toBe("rejected");
    await eventually("none speaks", async () => (await sampleOf(tier.url, "svc_tts_model_streams")) === 0);
  });
});

describe("the arcana tier", () => {
  let tier: RunningTier;
  beforeAll(async () => {
    tier = await modelTier({ tier: "arcana" });
  });
  afterAll(() => tier.stop());

  test("synthesizes a word of millions of letters or marks without killing an engine", async () => {
    for (const text of [
      "a".repeat(5_000_000),
      `hello${"!".repeat(5_000_000)}`,
      `${"(".repeat(5_000_000)}hello`,
    ]) {
      const answer = await invoke(tier.url, { modelId: "arcana", speaker: "luna", text });
      expect(answer.status).toBe(200);
      const heard = [];
      for await (const frame of framesOf(answer)) {
        heard.push(frame.kind);
        if (heard.length > 100) break;
      }
      expect(heard).toContain("audio");
      expect(heard).not.toContain("error");
    }
  });

  test("is not blocked by millions of marks without a word", async () => {
    const text = ". ".repeat(1_000_000);
    const long = invoke(tier.url, { modelId: "arcana", speaker: "luna", text });
    let answered = 0;
    let over = false;
    const watched = long.then(() => {
      over = true;
    });
    for (; !over; answered++) expect(await get(tier, "/readyz")).toEqual([200, "ok"]);
    expect(answered).toBeGreaterThan(10); // there would be one entry if the text were read at once
    await watched;
    expect((await long).status).toBe(200);
    await (await long).body?.cancel();
  });
});

/** A tier for a single test, stopped at its end. */
async function ownTier(options: Partial<ModelTierOptions>): Promise<RunningTier> {
  const tier = await modelTier(options);
  onTestFinished(() => tier.stop());
  return tier;
}

/** Occupies a slot with a stream that is not read, until the test ends. */
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
  "max_tokens bounds the audio of a phrase: %s takes %d tokens a second",
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

test("requests above the stream limit wait in the queue, and above the queue limit they are refused with Retry-After", async () => {
  const tier = await ownTier({ maxConcurrentStreams: 2 });
  const held = [await hold(tier), await hold(tier)];
  const queued = [hear(tier.url, {}), hear(tier.url, {})];
  await eventually("two wait", async () => (await waiting(tier)) === 2);
  const refused = await invoke(tier.url, {});
  expect(refused.status).toBe(503);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  expect(await refused.json()).toMatchObject({ code: "saturated" });
  await held[0]?.body?.cancel();
  for (const { words } of await Promise.all(queued)) expect(words).toHaveLength(1);
});

test("a queued request is refused at its deadline, and not before", async () => {
  const clock = new FakeClock();
  const tier = await ownTier({ maxConcurrentStreams: 1, queueDeadlineMs: 5_000, clock });
  await hold(tier);
  const late = invoke(tier.url, {});
  await eventually("it waits", async () => (await waiting(tier)) === 1);
  await clock.advance(4_999);
  expect(await waiting(tier)).toBe(1);
  await clock.advance(1);
  expect(await (await late).json()).toMatchObject({ status: 503, code: "saturated" });
  expect(await waiting(tier)).toBe(0);
  rules.exercised("admission");
});

test("a client that disconnects while it waits leaves the queue, and the next request has its slot", async () => {
  const clock = new FakeClock(); // without any deadline
  const tier = await ownTier({ maxConcurrentStreams: 1, clock });
  const held = await hold(tier);
  const hangUp = new AbortController();
  const gone = invoke(tier.url, {}, hangUp.signal).catch((error: Error) => error.name);
  await eventually("it waits", async () => (await waiting(tier)) === 1);
  hangUp.abort();
  expect(await gone).toBe("AbortError");
  await eventually("the queue is empty", async () => (await waiting(tier)) === 0);
  const next = hear(tier.url, {});
  await eventually("the next one waits", async () => (await waiting(tier)) === 1);
  await held.body?.cancel();
  expect((await next).words).toHaveLength(1);
});

test("a draining tier finishes its streams and refuses new requests", async () => {
  const tier = await modelTier({ clock: new FakeClock() }); // the drain of this tier never ends
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

test("a draining tier does not end before its responses have left the kernel", async () => {
  const clock = new FakeClock();
  const tier = await modelTier({ drainSeconds: 50, clock });
  const port = Number(new URL(tier.url).port);
  // a client that does not read gets little data, because the kernel keeps the rest
  const response = await invoke(tier.url, { text: sentence.repeat(8) });
  await eventually("it is spoken", async () => (await sampleOf(tier.url, "svc_tts_model_streams")) === 0);
  expect(await unsentBytes(port)).toBeGreaterThan(100_000);
  let gone = false;
  const stopping = tier.stop().then(() => {
    gone = true;
  });
  await eventually("it no longer listens", () => refusesConnections(tier.url));
  // The server checks the kernel's send queues every 100 ms, and ends after thirty seconds without progress.
  const look = async () => {
    await eventually("it waits for its next look", () => clock.timers > 0);
    await clock.advance(100);
  };
  for (let looks = 0; looks < 200; looks++) await look();
  expect(gone).toBe(false);
  let ending = "";
  for await (const { kind } of framesOf(response)) ending = kind;
  expect(ending).toBe("end");
  await eventually("it is gone", async () => {
    await clock.advance(100);
    return gone;
  });
  await stopping;
  expect(await unsentBytes(port)).toBe(0);
});

test("a stream that outlasts the drain is interrupted at its end and not before, and never looks complete", async () => {
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
  // an error frame if the connection still accepts one, or a closed connection
  expect(await last().catch(() => "cut")).toMatch(/^(error|cut)$/);
  await eventually("the tier is gone", async () => {
    await clock.advance(100);
    return Promise.race([stopping.then(() => true), settle().then(() => false)]);
  });
});

test("tokens are read again when their file changes, and a missing file admits no request", async () => {
  const tier = await ownTier({ tokens: { kind: "folder", path: folder } });
  const status = async () => (await invoke(tier.url, { text: "" })).status;
  expect(await status()).toBe(401);
  writeFileSync(join(folder, "accepted"), `an-older-one\n${internalToken}\n`);
  await expect.poll(status).toBe(200);
  writeFileSync(join(folder, "accepted"), "an-older-one\n");
  await expect.poll(status).toBe(401);
});
