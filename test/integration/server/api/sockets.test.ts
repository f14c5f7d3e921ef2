/** Tests the text sockets with a scripted model tier. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../../support/eventually.ts";
import { seededRandom } from "../../../support/seed.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { type ScriptedModel, speakTone, startScriptedModel } from "../../../support/server/scripted-model.ts";
import {
  connectSocket,
  postUpgrade,
  refusedUpgrade,
  type SocketClient,
} from "../../../support/sockets/client.ts";
import {
  scriptedSeconds as seconds,
  speakAndWait,
  speakWords,
} from "../../../support/sockets/scripted-speech.ts";

const pcm = "speaker=abbie&modelId=mist&audioFormat=pcm&samplingRate=8000";

let api: TestApi;
let model: ScriptedModel;
const open: SocketClient[] = [];

beforeAll(async () => {
  model = await startScriptedModel(speakWords);
  const route = [{ pool: "p", service: model.url, weight: 100, idle: false }];
  api = await startTestApi({ mist: route, mistv2: route, arcana: route });
});

beforeEach(() => {
  model.calls.length = 0;
  model.script = speakWords;
});

afterEach(() => {
  for (const { socket } of open.splice(0)) socket.terminate();
});

afterAll(async () => {
  await api.stop();
  await model.close();
});

async function connect(path: string, more = {}): Promise<SocketClient> {
  const client = await connectSocket(api.url, path, { key: api.key, ...more });
  open.push(client);
  return client;
}

/** Returns the number of requests and syntheses with the outcome. */
async function countRequests(outcome: string): Promise<number> {
  const metrics = await (await fetch(`${api.url}/metrics`)).text();
  const lines = metrics.matchAll(/^svc_tts_requests_total\{(.*)\} (\d+)/gm);
  return [...lines].reduce(
    (sum, [, labels = "", count]) => sum + (labels.includes(`outcome="${outcome}"`) ? Number(count) : 0),
    0,
  );
}

const spokenTexts = () => model.calls.map(({ invocation }) => invocation.text);

describe("a turn", () => {
  it("consists of chunks with whole samples, timestamps and done", async () => {
    const client = await connect(`/ws3?${pcm}`);
    client.send({ text: "Hello there. ", contextId: "a" }, { operation: "flush", contextId: "a" });
    await client.until("done");
    await client.settled();
    expect(client.sequence).toEqual(["chunk", "timestamps", "done"]);
    expect(client.audio.length).toBe(2 * 8000 * seconds);
    for (const { data } of client.ofType("chunk")) {
      expect(Buffer.from(String(data), "base64").length % 2).toBe(0);
    }
    expect(client.events.map(({ contextId }) => contextId)).toEqual(client.events.map(() => "a"));
    expect(client.ofType("timestamps")[0]?.word_timestamps).toEqual({
      words: ["Hello", "there."],
      start: [0, 0.15],
      end: [0.15, 0.3],
    });
    expect(client.events.at(-1)).toEqual({ type: "done", contextId: "a" });
  });

  it("of several sentences has a single done, after the flush (11.3)", async () => {
    const client = await connect(`/ws3?${pcm}`);
    client.send({ text: "One. ", contextId: "a" });
    await client.until("timestamps");
    await client.settled();
    expect(client.ofType("done")).toEqual([]);
    client.send({ text: "Two. ", contextId: "a" });
    await client.until("timestamps", 2);
    client.send({ operation: "flush", contextId: "a" });
    await client.until("done");
    expect(client.sequence).toEqual(["chunk", "timestamps", "chunk", "timestamps", "done"]);
    expect(spokenTexts()).toEqual(["One.", "Two."]);
  });

  it("has the complete audio if it follows another turn on the same socket (11.2)", async () => {
    const client = await connect(`/ws3?${pcm}`);
    client.send({ text: "One.", contextId: "a" }, { operation: "flush" });
    await client.until("done");
    const first = client.audio.length;
    client.send({ text: "Two.", contextId: "b" }, { operation: "flush" });
    await client.until("done", 2);
    expect(client.audio.length).toBe(2 * first);
  });

  it("is separate from other turns that were sent without a pause (11.5)", async () => {
    const client = await connect(`/ws3?${pcm}`);
    for (const contextId of ["a", "b", "c"]) {
      client.send({ text: `Text ${contextId}.`, contextId }, { operation: "flush", contextId });
    }
    await client.until("done", 3);
    expect(client.ofType("done").map(({ contextId }) => contextId)).toEqual(["a", "b", "c"]);
    expect(client.ofType("timestamps").map(({ contextId }) => contextId)).toEqual(["a", "b", "c"]);
    expect(spokenTexts()).toEqual(["Text a.", "Text b.", "Text c."]);
  });

  it("has timestamps from the start of the turn with timestampBase=stream", async () => {
    const client = await connect(`/ws3?${pcm}&timestampBase=stream`);
    client.send({ text: "One. ", contextId: "a" });
    await client.until("timestamps");
    client.send({ text: "Two.", contextId: "a" }, { operation: "flush" });
    await client.until("done");
    const starts = client.ofType("timestamps").map(({ word_timestamps: times }) => times);
    expect(starts).toMatchObject([{ start: [0] }, { start: [seconds] }]);
  });
});

describe("segments", () => {
  it("end at sentences, never inside a number or an abbreviation (11.7)", async () => {
    const client = await connect(`/ws3?${pcm}`);
    client.send({ text: "Take 2.5 ml, Dr. Smith." });
    await client.settled();
    expect(spokenTexts()).toEqual([]);
    client.send({ text: " " });
    await client.until("done");
    expect(spokenTexts()).toEqual(["Take 2.5 ml, Dr. Smith."]);
  });

  it("end only at a flush with segment=never (11.6)", async () => {
    const client = await connect(`/ws3?${pcm}&segment=never`);
    client.send({ operation: "flush" }, { text: "One. Two. " });
    await client.settled();
    expect(client.events).toEqual([]);
    client.send({ operation: "flush" }, { text: "Three." }, { operation: "flush" });
    await client.until("done", 2);
    expect(spokenTexts()).toEqual(["One. Two.", "Three."]);
  });

  it("end immediately with segment=immediate, without the end of a sentence", async () => {
    const client = await connect(`/ws3?${pcm}&segment=immediate`);
    client.send({ text: "One tw" });
    await client.until("done");
    expect(spokenTexts()).toEqual(["One tw"]);
  });
});

describe("a clear", () => {
  it("stops the engine, and the server sends the timestamps of the synthesized words and one done (11.4)", async () => {
    model.script = speakAndWait;
    const client = await connect(`/ws3?${pcm}`);
    client.send({ text: "First second. Third. ", contextId: "a" });
    await client.until("chunk");
    client.send({ operation: "clear" });
    await client.until("done");
    await model.calls[0]?.aborted;
    const audio = client.audio.length;
    model.script = speakWords;
    client.send({ text: "Next. ", contextId: "b" }, { operation: "flush" });
    await client.until("done", 2);
    expect(client.sequence).toEqual(["chunk", "timestamps", "done", "chunk", "timestamps", "done"]);
    expect(client.ofType("timestamps")[0]).toMatchObject({ word_timestamps: { words: ["first"] } });
    expect(client.audio.length - audio).toBe(2 * 8000 * seconds);
    expect(spokenTexts()).toEqual(["First second. Third.", "Next."]);
  });

  it("causes no message after a finished turn", async () => {
    const client = await connect(`/ws3?${pcm}`);
    client.send({ text: "One.", contextId: "a" }, { operation: "flush" });
    await client.until("done");
    const before = client.events.length;
    client.send({ operation: "clear" });
    await client.settled();
    expect(client.events.length).toBe(before);
  });
});

describe("the end of a socket", () => {
  it("after eos without text consists of done and the close code 1000 (11.8)", async () => {
    const client = await connect(`/ws3?${pcm}`);
    client.send({ operation: "eos", contextId: null });
    expect(await client.closed()).toEqual({ code: 1000, reason: "" });
    expect(client.events).toEqual([{ type: "done", contextId: null }]);
  });

  it("after eos follows the audio of all text (11.8)", async () => {
    const client = await connect(`/ws3?${pcm}`);
    client.send({ text: "One", contextId: null }, { operation: "eos", contextId: null });
    expect(await client.closed()).toEqual({ code: 1000, reason: "" });
    expect(client.sequence).toEqual(["chunk", "timestamps", "done"]);
  });

  it("by a reset stops the engine, and is not counted as an error (11.14)", async () => {
    const [errors, gone] = [await countRequests("error"), await countRequests("gone")];
    model.script = speakAndWait;
    const client = await connect(`/ws3?${pcm}`);
    client.send({ text: "One. " });
    await client.until("chunk");
    client.socket.terminate();
    await model.calls[0]?.aborted;
    await eventually("the synthesis in the metrics", async () => (await countRequests("gone")) === gone + 1);
    expect(await countRequests("error")).toBe(errors);
  });
});

describe("invalid messages", () => {
  it("cause one error each, and the socket stays open (11.11)", async () => {
    const client = await connect(`/ws3?${pcm}`);
    const wrong = ["{", "[]", "text", '{"operation":"stop"}', '{"text":5}', '{"text":"a","contextId":5}'];
    for (let i = 0; i < 100; i++) client.send(wrong[i % wrong.length] ?? "");
    await client.until("error", 100);
    for (const { message } of client.ofType("error")) expect(message).toBeTypeOf("string");
    client.send({ text: "One. " });
    await client.until("done");
    expect(client.ofType("error").length).toBe(100);
  });

  it("close the socket if they are too large", async () => {
    const client = await connect(`/ws3?${pcm}`);
    client.send({ text: "a".repeat(17 * 1024) });
    expect((await client.closed()).code).toBe(1009);
  });

  it("close the socket if the text exceeds the limit of the model", async () => {
    const client = await connect(`/ws3?${pcm}`);
    client.send({ text: "word ".repeat(250) }, { operation: "flush" });
    expect(await client.closed()).toEqual({ code: 1011, reason: "400: text is too long" });
  });
});

describe("a model tier that fails", () => {
  it("ends the context with an error, and the socket stays open", async () => {
    model.script = async (call) => {
      await call.head(8000);
      await call.tone(1600, 8000);
      await call.flushed();
      call.cut();
    };
    const client = await connect(`/ws3?${pcm}`);
    client.send({ text: "One. ", contextId: "a" });
    await client.until("error");
    expect(client.ofType("error")[0]).toMatchObject({ contextId: "a" });
    model.script = speakWords;
    client.send({ text: "Two. ", contextId: "b" }, { operation: "flush" });
    await client.until("done");
    expect(client.ofType("done")).toEqual([{ type: "done", contextId: "b" }]);
  });

  it("closes the socket with 1013 if it is saturated", async () => {
    model.script = (call) => call.refuse(503, { code: "saturated", detail: "full" });
    const client = await connect(`/ws3?${pcm}`);
    client.send({ text: "One. " });
    expect(await client.closed()).toEqual({ code: 1013, reason: "503: try again later" });
  });
});

describe("protocols and paths", () => {
  it("/ws2 sends done: true, /ws3 does not (11.12)", async () => {
    for (const [path, done] of [
      ["/ws2", { type: "done", done: true, contextId: null }],
      ["/ws3", { type: "done", contextId: null }],
    ] as const) {
      const client = await connect(`${path}?${pcm}`);
      client.send("<EOS>");
      await client.closed();
      expect(client.events).toEqual([done]);
    }
  });

  it("/ws accepts bare text and sends only audio", async () => {
    const client = await connect(`/ws?${pcm}`);
    client.send("Hello there, ");
    await eventually("audio", () => client.binary.length > 0);
    client.send("world", "<EOS>");
    expect((await client.closed()).code).toBe(1000);
    expect(client.events).toEqual([]);
    expect(client.audio.length).toBe(2 * 2 * 8000 * seconds);
    expect(spokenTexts()).toEqual(["Hello there,", "world"]);
  });

  it.each(["/ws3", "/v1/svc-tts/ws3", "/ws3/", "/any/prefix/ws2"])("%s is served (11.21)", async (path) => {
    const client = await connect(`${path}?${pcm}`);
    client.send({ operation: "eos" });
    expect((await client.closed()).code).toBe(1000);
  });

  it("an upgrade is accepted as POST, and with the scheme Api-Key", async () => {
    expect(await postUpgrade(api.url, `/ws3?${pcm}`, api.key)).toBe(101);
    await connect(`/ws3?${pcm}`, { key: undefined, headers: { authorization: `Api-Key ${api.key}` } });
  });
});

describe("the query", () => {
  it.each([
    "speaker=abbie&segment=&lang=eng&reduceLatency=True&noTextNormalization=false",
    "speaker=abbie&inlineSpeedAlpha=0.5,2&pauseBetweenBrackets=true&unknown=%zz",
    "speaker=abbie&speaker=other&modelId=mist&temperature=",
    "speaker=abbie&lang=en&modelId=mistv1&timeScaleFactor=9",
    "speaker=luna&modelId=coda&repetition_penalty=1.5&temperature=0.5&top_p=1&max_tokens=1200",
  ])("%s is accepted (11.19)", async (query) => {
    await connect(`/ws3?${query}`);
  });

  it.each([
    ["modelId=mist", "speaker is required"],
    ["speaker=no-such-voice", "speaker must be a voice"],
    ["speaker=abbie&audioFormat=flac", "audioFormat must be one of"],
    ["speaker=abbie&samplingRate=fast", "samplingRate must be"],
    ["speaker=abbie&lang=fra", "lang must match"],
    ["speaker=abbie&segment=always", "segment must be one of"],
    ["speaker=abbie&pauseBetweenBrackets=maybe", "pauseBetweenBrackets must be"],
  ])("%s is rejected with 400: %s (11.13)", async (query, problem) => {
    const refusal = await refusedUpgrade(api.url, `/ws3?${query}`, { key: api.key });
    expect(refusal).toMatchObject({ status: 400, body: expect.stringContaining(problem) });
    expect(refusal.headers["content-type"]).toMatch(/^text\/plain/);
    expect(refusal.headers["x-request-id"]).toBeTruthy();
  });

  it("accepts the names of models and voices of published clients, and their direction of speed (11.20)", async () => {
    const turns = [
      ["speaker=luna&modelId=coda&speedAlpha=2", "arcana", "luna", 0.5],
      ["speaker=abbie&modelId=mist&speedAlpha=2", "mist", "abbie", 2],
      ["speaker=abbie&modelId=mistv3&speedAlpha=2", "mist", "abbie", 0.5],
      ["speaker=abbie&modelId=mistv3&timeScaleFactor=0.5", "mist", "abbie", 0.5],
    ] as const;
    for (const [query, modelId, speaker, stretch] of turns) {
      const client = await connect(`/ws3?${query}&audioFormat=pcm`);
      expect(client.headers).toMatchObject({ "x-model": modelId, "x-voice": speaker });
      client.send({ text: "One. " });
      await client.until("done");
      expect(model.calls.at(-1)?.invocation).toMatchObject({ modelId, speaker, stretch });
    }
  });

  it("without a format selects WAV, with its header in the first chunk (11.9)", async () => {
    const client = await connect("/ws3?speaker=abbie");
    client.send({ text: "One. " });
    await client.until("done");
    const [first] = client.ofType("chunk");
    const bytes = Buffer.from(String(first?.data), "base64");
    expect(bytes.subarray(0, 4).toString("latin1")).toBe("RIFF");
    expect(bytes.length).toBeGreaterThan(44);
  });
});

describe("a rejected upgrade", () => {
  it.each([
    [{}, 401, "Missing Authorization header"],
    [{ headers: { authorization: "Bearer " } }, 401, "empty apikey"],
    [{ key: "svc_wrong" }, 401, "invalid api key"],
  ])("has a plain text body, with options %j", async (options, status, body) => {
    const refusal = await refusedUpgrade(api.url, `/ws3?${pcm}`, options);
    expect(refusal).toMatchObject({ status, body });
    expect(refusal.headers["content-type"]).toMatch(/^text\/plain/);
    expect(refusal.headers["x-request-id"]).toBeTruthy();
  });

  it("has the status 403 for a key without the scope", async () => {
    const refusal = await refusedUpgrade(api.url, `/ws3?${pcm}`, { key: api.otherKeys.unscoped });
    expect(refusal).toMatchObject({ status: 403, body: "access forbidden" });
  });

  it("has the status 426 for a request that is not an upgrade", async () => {
    const answer = await fetch(`${api.url}/ws3`, { headers: { authorization: `Bearer ${api.key}` } });
    expect(answer.status).toBe(426);
    await answer.text();
  });
});

describe("the limits of a key", () => {
  it("reject further sockets with 429 and Retry-After (11.13)", async () => {
    const route = [{ pool: "p", service: model.url, weight: 100, idle: false }];
    const limited = await startTestApi({ mist: route }, { sockets: { perKey: 1 } });
    const first = await connectSocket(limited.url, `/ws3?${pcm}`, { key: limited.key });
    const refusal = await refusedUpgrade(limited.url, `/ws3?${pcm}`, { key: limited.key });
    expect(refusal).toMatchObject({ status: 429, body: "Currently at websocket limit" });
    expect(refusal.headers["retry-after"]).toBe("1");
    first.socket.terminate();
    await eventually("an accepted upgrade", async () => {
      const again = await connectSocket(limited.url, `/ws3?${pcm}`, { key: limited.key }).catch(
        () => undefined,
      );
      again?.socket.terminate();
      return again !== undefined;
    });
    await limited.stop();
  });
});

it("a socket sends whole samples, for 1,000 texts with audio of any length and rate (11.9)", async () => {
  const random = seededRandom("whole samples");
  const rates = [8000, 16_000, 22_050, 24_000];
  model.script = async (call) => {
    const rate = rates[random.below(rates.length)] ?? 8000;
    const samples = 1 + random.below(2000);
    await call.head(rate);
    await call.tone(samples, rate);
    await call.end(samples);
  };
  const client = await connect(`/ws3?${pcm}&segment=never`);
  for (let sent = 0; sent < 1000; sent += 100) {
    for (let i = 0; i < 100; i++) client.send({ text: "One." }, { operation: "flush" });
    await client.until("done", sent + 100);
  }
  const chunks = client.ofType("chunk").map(({ data }) => Buffer.from(String(data), "base64").length);
  expect(chunks.length).toBeGreaterThan(900);
  expect(chunks.filter((bytes) => bytes % 2 !== 0)).toEqual([]);
});

describe("a server that drains", () => {
  it("finishes 100 syntheses, and closes all sockets with 1001, idle ones first (11.15)", async () => {
    const route = [{ pool: "p", service: model.url, weight: 100, idle: false }];
    const draining = await startTestApi({ mist: route }, { sockets: { newPerSecond: 1000 } });
    const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
    model.script = async (call) => {
      await call.head(8000);
      await call.tone(1600, 8000);
      await mayEnd;
      await call.tone(1600, 8000);
      await call.end(3200);
    };
    const connectHere = () => connectSocket(draining.url, `/ws3?${pcm}`, { key: draining.key });
    const idle = await connectHere();
    const speaking = await Promise.all(Array.from({ length: 100 }, connectHere));
    for (const client of speaking) {
      client.send({ text: "One.", contextId: "a" }, { operation: "flush" });
    }
    for (const client of speaking) await client.until("chunk");
    const stopped = draining.stop();
    expect(await idle.closed()).toEqual({ code: 1001, reason: "going away" });
    expect(speaking.filter(({ closing }) => closing)).toEqual([]);
    end();
    for (const client of speaking) {
      expect(await client.closed()).toEqual({ code: 1001, reason: "going away" });
      expect(client.sequence).toEqual(["chunk", "timestamps", "done"]);
      expect(client.audio.length).toBe(2 * 3200);
    }
    await stopped;
  });
});

it("a synthesis on a socket counts towards the stream limit of its key, like an HTTP request", async () => {
  const route = [{ pool: "p", service: model.url, weight: 100, idle: false }];
  const limited = await startTestApi({ mist: route }, { keyLimits: { streams: 1 } });
  model.script = speakAndWait;
  const client = await connectSocket(limited.url, `/ws3?${pcm}`, { key: limited.key });
  client.send({ text: "One. " });
  await client.until("chunk");
  const rejected = await limited.post({ speaker: "abbie", text: "Two." }, { accept: "audio/pcm" });
  expect(rejected.status).toBe(429);
  client.send({ operation: "clear" });
  await client.until("done");
  model.script = speakTone(0.1);
  await eventually("an accepted request", async () => {
    const answer = await limited.post({ speaker: "abbie", text: "Two." }, { accept: "audio/pcm" });
    await answer.arrayBuffer();
    return answer.status === 200;
  });
  client.socket.terminate();
  await limited.stop();
});
