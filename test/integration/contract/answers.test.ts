import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { voices } from "../../../config/contract/voices.ts";
import { defaultLimits } from "../../../server/api/request/limits.ts";
import { errorCodes } from "../../../server/contract/errors.ts";
import { wireType } from "../../../server/contract/wire.ts";
import type { ApiSettings } from "../../../server/start/api-settings.ts";
import { decodeAudio } from "../../support/audio/audio.ts";
import { eventually } from "../../support/eventually.ts";
import { rawRequest, rawSpeech, startTestApi, type TestApi } from "../../support/server/api-tier.ts";
import { type HeardEvent, joinChunks, parseEvents } from "../../support/server/events.ts";
import { hear, invoke } from "../../support/server/model-tier.ts";
import { startWholeServer, type WholeServer } from "../../support/server/whole-server.ts";
import { type Container, openaiRefused, openaiSpoken, refused, routes, spellings } from "./answer-rows.ts";
import { heldRules } from "./held-rules.ts";
import type { RuleId } from "./rules.ts";

const held = heldRules(import.meta.filename);

let server: WholeServer;
beforeAll(async () => {
  server = await startWholeServer({}, { drainSeconds: 0.2 });
  await eventually("all models to be reachable", async () =>
    (await (await fetch(`${server.api.url}/health`)).text()).includes('"modelReachable":true'),
  );
});
afterAll(() => server.stop());

/** An API tier for a single test. */
async function ownApi(model: string, settings: Partial<ApiSettings>): Promise<TestApi> {
  const api = await startTestApi(model, { voices, ...settings });
  onTestFinished(() => api.stop());
  return api;
}

/** Adds the rules that a test exercises to its title. */
const titleOf = (rules: readonly RuleId[], title: string) => `${title} (${rules.join(", ")})`;

const mist = { speaker: "alan", text: "Good day." };
const arcana = { speaker: "luna", modelId: "arcana", text: "Good day." };
const long = "This one goes on and on, and then it goes on again. ".repeat(200);
const urlOf = (container: Container) => server[container].url;

/** Checks the status, the media type and each field of a problem document. */
async function expectProblem(answer: Response, status: number, code: string): Promise<void> {
  expect(answer.status).toBe(status);
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  const body = (await answer.json()) as Record<string, unknown>;
  expect(body).toEqual({
    type: `https://svc-tts.dev/errors#${code}`,
    title: expect.stringMatching(/.{5}/),
    status,
    detail: expect.stringMatching(/^.{10,}\.$/s),
    code,
    requestId: answer.headers.get("x-request-id"),
    ...(body.errors !== undefined && { errors: expect.any(Array) }),
  });
}

describe("the routes", () => {
  it.each(routes)(
    "%j: %s responds to %s with %i %s",
    held.row(async (_rules, container, request, status, type, body) => {
      const [method = "", path = ""] = request.split(" ");
      const answer = await fetch(`${urlOf(container)}${path}`, { method });
      expect(answer.status).toBe(status);
      expect(answer.headers.get("content-type")?.split(";")[0]).toBe(type);
      expect(await answer.text()).toMatch(body);
      if (status === 405) expect(answer.headers.get("allow")).toMatch(/^(POST|GET, HEAD|HEAD, GET)$/);
      if (status === 401) expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer\b/);
    }),
  );

  held.it(
    ["2.3 apiStatus", "2.3 timestamp", "2.3 licenseStatus", "2.3 modelReachable"],
    "GET /health returns the health object",
    async () => {
      const before = Date.now();
      const answer = await fetch(`${server.api.url}/health`);
      const body = (await answer.json()) as Record<string, unknown>;
      expect(body).toEqual({
        apiStatus: "ok",
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/),
        licenseStatus: "valid",
        modelReachable: true,
      });
      const timestamp = Date.parse(String(body.timestamp));
      expect([before, timestamp, Date.now()].sort((a, b) => a - b)[1]).toBe(timestamp);
    },
  );

  held.it(["GET /v1/voices", "GET /v1/models"], "list the catalogue and the three models", async () => {
    const list = async () =>
      (await (await fetch(`${server.api.url}/v1/voices`)).json()) as {
        voices: { id: string; engine?: string }[];
      };
    await eventually("the engine of every voice", async () =>
      (await list()).voices.every(({ engine }) => engine),
    );
    const listed = await list();
    expect(listed.voices.map(({ id }) => id)).toEqual(voices.map(({ id }) => id));
    const models = (await (await fetch(`${server.api.url}/v1/models`)).json()) as {
      data: { id: string; engines: string[] }[];
    };
    expect(models.data.map(({ id }) => id)).toEqual(["mist", "mistv2", "arcana"]);
    const engineOf = (voiceId: string) => listed.voices.find(({ id }) => id === voiceId)?.engine;
    expect([engineOf("alan"), engineOf("greta")]).toEqual(["flite", "espeak"]);
    expect(models.data[0]?.engines).toEqual(["flite", "espeak"]);
  });

  held.it(["no CORS"], "send no CORS headers, also not to a preflight request", async () => {
    const headers = { origin: "https://example.com", "access-control-request-method": "POST" };
    const preflight = await fetch(`${server.api.url}/v1/svc-tts`, { method: "OPTIONS", headers });
    const spoken = await server.api.post(mist, { accept: "audio/pcm", origin: "https://example.com" });
    await spoken.arrayBuffer();
    for (const answer of [preflight, spoken]) {
      expect([...answer.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
  });
});

describe("POST /invocations", () => {
  const invocationRules: readonly RuleId[] = ["/invocations", "4.6 /invocations", "ORCA"];
  it.each(["mist", "arcana"] as const)(
    titleOf(invocationRules, "of %s returns frames, and its load with every response"),
    async (container) => {
      const speaks = container === "mist" ? { modelId: "mist" } : { modelId: "arcana", speaker: "luna" };
      const good = await invoke(urlOf(container), speaks as Parameters<typeof invoke>[1]);
      expect(good.status).toBe(200);
      expect(good.headers.get("content-type")).toBe(wireType);
      await good.arrayBuffer();
      const bad = await invoke(urlOf(container), { speaker: "no-such-voice" });
      await expectBadInvocation(bad);
      for (const answer of [good, bad]) {
        expect(answer.headers.get("endpoint-load-metrics")).toMatch(
          /^TEXT application_utilization=\d\.\d+(, named_metrics\.\w+=\d+(\.\d+)?)+$/,
        );
      }
      held.exercised(...invocationRules);
    },
  );

  async function expectBadInvocation(answer: Response): Promise<void> {
    expect(answer.status).toBe(400);
    expect(answer.headers.get("content-type")).toContain("application/problem+json");
    expect(await answer.json()).toMatchObject({
      code: "invalid_request",
      errors: [{ pointer: expect.any(String) }],
    });
  }
});

describe("the HTTP counters of the specification", () => {
  const rules: readonly RuleId[] = [
    "4.6 http_requests_total",
    "4.6 http_errors_total",
    "7.1",
    "bounded error_message",
  ];
  it.each(["api", "mist", "arcana"] as const)(
    titleOf(rules, "have the specified names, type and labels in the metrics of %s"),
    async (container) => {
      await fetch(`${urlOf(container)}/nowhere/${crypto.randomUUID()}?text=secret`);
      await fetch(`${urlOf(container)}/nowhere`, { method: "PURGE" });
      const text = await (await fetch(`${urlOf(container)}/metrics`)).text();
      const expected = {
        http_requests_total: ["endpoint", "http_status", "method"],
        http_errors_total: ["endpoint", "error_message", "http_status", "method"],
      };
      for (const [name, labels] of Object.entries(expected)) {
        expect(text).toContain(`# TYPE ${name} counter\n`);
        const lines = text.split("\n").filter((line) => line.startsWith(`${name}{`));
        expect(lines.length).toBeGreaterThan(0);
        for (const line of lines) {
          expect([...line.matchAll(/(\w+)="/g)].map(([, label]) => label).toSorted()).toEqual(labels);
          const [, message] = /error_message="([^"]*)"/.exec(line) ?? [];
          if (message !== undefined) expect(errorCodes).toContain(message);
        }
      }
      expect(text).not.toMatch(/nowhere|PURGE|secret/);
      held.exercised(...rules);
    },
  );
});

describe("a rejected request", () => {
  it.each(refused)(
    "%j: with body %j and headers %j returns %i %s",
    held.row(async (_rules, body, headers, status, code) => {
      const answer = await server.api.post(body, { accept: "audio/wav", ...headers });
      expect(answer.headers.get("vary")).toBe("Accept");
      expect(answer.headers.get("www-authenticate")?.startsWith("Bearer") ?? false).toBe(status === 401);
      await expectProblem(answer, status, code);
    }),
  );

  held.it(["401"], "gets the same response for an unknown and for an expired key", async () => {
    const answers = await Promise.all(
      [`Bearer ${server.api.otherKeys.expired}`, "Bearer unknown"].map(async (authorization) => {
        const answer = await server.api.post(mist, { authorization, "x-request-id": "same" });
        return {
          status: answer.status,
          challenge: answer.headers.get("www-authenticate"),
          body: await answer.text(),
        };
      }),
    );
    expect(answers[0]).toEqual(answers[1]);
  });

  held.it(["problem document", "400"], "has a problem document without the text of the request", async () => {
    const answer = await server.api.post(
      { speaker: 7, text: "secret ".repeat(200) },
      { accept: "audio/wav" },
    );
    expect(await answer.text()).not.toContain("secret");
  });

  held.it(["body limit", "413"], "can have too large a body: at most 16 MiB are allowed", async () => {
    expect(defaultLimits.bodyBytes).toBe(16 * 1024 * 1024);
    const shell = JSON.stringify({ ...mist, text: "" }).length;
    const ofBytes = (bytes: number) => JSON.stringify({ ...mist, text: "a".repeat(bytes - shell) });
    const atLimit = await server.api.post(ofBytes(defaultLimits.bodyBytes), { accept: "audio/pcm" });
    // The server parses this body, and rejects the text, which is too long for mist.
    await expectProblem(atLimit, 400, "invalid_request");
    const aboveLimit = await server.api.post(ofBytes(defaultLimits.bodyBytes + 1), { accept: "audio/pcm" });
    await expectProblem(aboveLimit, 413, "body_too_large");
  });

  held.it(["JSON limit", "413"], "can be for too much JSON audio; the error suggests streams", async () => {
    expect(defaultLimits.jsonAudioBytes).toBe(64 * 1024 * 1024);
    const small = await ownApi(server.mist.url, { limits: { jsonAudioBytes: 10_000 } });
    const answer = await small.post({ ...mist, audioFormat: "wav" }, { accept: "application/json" });
    expect(answer.status).toBe(413);
    expect(await answer.json()).toMatchObject({
      code: "audio_too_large",
      detail: expect.stringContaining("Accept: audio/"),
    });
    expect((await small.post(mist, { accept: "audio/pcm" })).status).toBe(200);
  });
});

describe("the highest sampling rate of arcana", () => {
  held.it(["self-hosted arcana rates"], "is a setting, which the OpenAPI document contains", async () => {
    expect(defaultLimits.highestRate).toBe(384_000);
    const api = await ownApi(server.arcana.url, { limits: { highestRate: 48_000 } });
    const statusAt = async (samplingRate: number) =>
      (await api.post({ ...arcana, samplingRate }, { accept: "audio/wav" })).status;
    expect([await statusAt(48_000), await statusAt(48_001)]).toEqual([200, 400]);
    const document = await (await fetch(`${api.url}/openapi.json`)).text();
    expect(document).toContain('"minimum":1,"maximum":48000');
  });
});

describe("an unexpected error of the server", () => {
  held.it(["500", "problem document"], "exposes no internals in its problem document", async () => {
    const models = Object.assign(["mist" as const], {
      includes: () => {
        throw new Error("the inside, at /etc/passwd:1");
      },
    });
    const broken = voices.filter(({ id }) => id === mist.speaker).map((voice) => ({ ...voice, models }));
    const api = await ownApi(server.mist.url, { voices: broken });
    const answer = await api.post(mist, { accept: "audio/pcm" });
    expect(await answer.clone().text()).not.toMatch(/inside|passwd|Error:|at \w+ \(/);
    await expectProblem(answer, 500, "internal");
  });
});

describe("a successful request", () => {
  it.each(spellings)(
    "%j: gets the same response with the headers %j",
    held.row(async (_rules, headers) => {
      const plain = await server.api.post(mist, { accept: "audio/pcm" });
      const answer = await server.api.post(mist, { accept: "audio/pcm", ...headers });
      expect(answer.status).toBe(200);
      expect(answer.headers.get("content-encoding")).toBe(null);
      expect(Buffer.from(await answer.arrayBuffer()).equals(Buffer.from(await plain.arrayBuffer()))).toBe(
        true,
      );
    }),
  );

  it.each([
    ["mine-1.a:b_C", true],
    ["x".repeat(128), true],
    ["x".repeat(129), false],
    ["two words", false],
    ["<script>", false],
  ])(titleOf(["request ID", "answer headers"], "with request ID %s keeps it: %s"), async (sent, isKept) => {
    for (const body of [mist, {}]) {
      const answer = await server.api.post(body, { accept: "audio/pcm", "x-request-id": sent });
      await answer.arrayBuffer();
      const id = answer.headers.get("x-request-id");
      if (isKept) expect(id).toBe(sent);
      else expect(id).toMatch(/^[\w-]{36}$/);
    }
    held.exercised("request ID", "answer headers");
  });
});

interface WordTimes {
  readonly words: readonly string[];
  readonly start: readonly number[];
  readonly end: readonly number[];
}

function wordTimes(events: readonly HeardEvent[]): WordTimes {
  const event = events.find(({ name }) => name === "timestamps")?.data as { word_timestamps: WordTimes };
  return event.word_timestamps;
}

describe("an event stream", () => {
  const words = { text: "Well, it's 7 o'clock - really!", speaker: "alan" };

  held.it(
    ["6.1", "6.2", "2.2 chunk", "2.2 timestamps", "2.2 done", "4.1 Response"],
    "has the events chunk, timestamps and done",
    async () => {
      const answer = await server.api.post({ ...words, audioFormat: "pcm" }, { accept: "text/event-stream" });
      const lines = (await answer.text()).split("\n").filter((line) => line !== "" && !line.startsWith(":"));
      expect(lines.length % 2).toBe(0);
      lines.forEach((line, i) => {
        expect(line).toMatch(i % 2 === 0 ? /^event: (chunk|timestamps|done)$/ : /^data: \{.*\}$/);
      });
      expect(lines.slice(-2)).toEqual(["event: done", 'data: {"done":true}']);
    },
  );

  held.it(
    ["word times", "2.2 timestamps"],
    "has the timestamps of the engine for each written word",
    async () => {
      const engine = await hear(server.mist.url, words);
      for (const samplingRate of [8000, 44_100]) {
        const body = { ...words, audioFormat: "pcm", samplingRate };
        const events = parseEvents(
          await (await server.api.post(body, { accept: "text/event-stream" })).text(),
        );
        const seconds = joinChunks(events).length / 2 / samplingRate;
        const times = wordTimes(events);
        expect(times).toEqual({
          words: ["Well", "it's", "7", "o'clock", "really"],
          start: engine.words.map(({ start }) => start),
          end: engine.words.map(({ end }) => end),
        });
        expect(times.end.at(-1)).toBeLessThanOrEqual(seconds + 0.001);
        times.start.forEach((start, i) => {
          expect(start).toBeGreaterThanOrEqual((times.end[i - 1] ?? 0) - 0.001);
          expect(times.end[i]).toBeGreaterThan(start);
        });
      }
    },
  );

  held.it(
    ["4.3 Other request fields", "every model, every variant"],
    "and every other form of response is available for text with mist's markup",
    async () => {
      const marked = {
        speaker: "susan",
        modelId: "mistv2",
        text: "one <200> {w1Rld} [three] 4",
        pauseBetweenBrackets: true,
        phonemizeBetweenBrackets: true,
        inlineSpeedAlpha: "1.5",
        noTextNormalization: true,
        speedAlpha: 0.9,
        lang: "eng",
        samplingRate: 16_000,
      };
      for (const [accept, audioFormat] of [
        ["application/json", "ogg"],
        ["application/json", "wav"],
        ["text/event-stream", "pcm"],
        ["audio/pcm", undefined],
      ] as const) {
        const answer = await server.api.post({ ...marked, audioFormat }, { accept });
        expect({ accept, audioFormat, status: answer.status }).toMatchObject({ status: 200 });
        await answer.arrayBuffer();
      }
    },
  );
});

describe("the OpenAI-compatible API", () => {
  const body = { model: "tts-1", voice: "nova", input: "Good day." };
  const post = (more: object) => server.api.post({ ...body, ...more }, {}, { path: "/v1/audio/speech" });

  it.each(openaiSpoken)(
    "%j: returns for %j the media type %s",
    held.row(async (_rules, more, mediaType, codec) => {
      const answer = await post(more);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("content-type")).toBe(mediaType);
      expect(answer.headers.get("x-sampling-rate")).toBe("24000");
      const form = mediaType === "audio/pcm" ? ["-f", "s16le", "-ar", "24000", "-ac", "1"] : [];
      const decoded = await decodeAudio(Buffer.from(await answer.arrayBuffer()), form);
      expect(decoded.codec).toBe(codec);
      expect(decoded.rate).toBe(codec === "opus" ? 48_000 : 24_000);
      expect(decoded.samples.length / decoded.rate).toBeGreaterThan(0.1);
    }),
  );

  it.each(openaiRefused)(
    "%j: rejects %j, and the error names %s",
    held.row(async (_rules, more, param) => {
      const answer = await post(more);
      expect(answer.status).toBe(400);
      const problem = (await answer.json()) as { detail: string };
      expect(problem).toMatchObject({
        code: "invalid_request",
        error: { message: problem.detail, type: "invalid_request_error", code: "invalid_request", param },
      });
    }),
  );
});

describe("a model that stops during a response", () => {
  held.it(["late failure of audio", "late failure of events", "503"], "leaves it incomplete", async () => {
    const spoken = { ...arcana, text: long };
    const { api } = server;
    const send = (accept: string, more: object) =>
      rawRequest(api.url, rawSpeech(api, { ...spoken, ...more }, accept));
    const types = ["audio/wav", "audio/mpeg", "audio/ogg"];
    const audio = types.map((accept) => send(accept, { samplingRate: 24_000 }));
    const events = send("text/event-stream", { audioFormat: "mp3" });
    const forms = ["stream-wav", "stream-mp3", "stream-ogg", "events-mp3"];
    await eventually("the first audio of all four responses", async () => {
      const metrics = await (await fetch(`${api.url}/metrics`)).text();
      return forms.every((form) =>
        metrics.includes(`svc_tts_first_audio_seconds_count{model="arcana",variant="${form}"}`),
      );
    });
    await server.arcana.stop();
    for (const { text } of await Promise.all(audio)) {
      expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
      expect(text.endsWith("\r\n0\r\n\r\n")).toBe(false);
      expect(text).not.toContain("problem");
    }
    const { text } = await events;
    const last = text.slice(text.lastIndexOf("event: "));
    expect(last).toMatch(/^event: error\ndata: \{"type":"https:.*"code":"\w+".*\}\n\n/);
    expect(text).not.toContain("event: done");

    const after = await server.api.post(arcana, { accept: "audio/wav" });
    expect(Number(after.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    await expectProblem(after, 503, "model_unreachable");
    // The other model still serves requests.
    expect((await server.api.post(mist, { accept: "audio/pcm" })).status).toBe(200);
  });
});
