/** Tests the v1 sockets with a scripted model tier: concurrent contexts, in JSON and in protobuf. */
import { request } from "node:http";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { EnvelopeEncoding } from "../../../../server/api/sockets/v1/envelopes.ts";
import { decodeAudio } from "../../../support/audio/audio.ts";
import { eventually } from "../../../support/eventually.ts";
import { eventuallyOn, FakeClock } from "../../../support/fake-clock.ts";
import { routeTo, sampleOf, startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { type ScriptedModel, startScriptedModel } from "../../../support/server/scripted-model.ts";
import type { ConnectOptions } from "../../../support/sockets/client.ts";
import {
  scriptedRate,
  scriptedSeconds,
  speakAndWait,
  speakWords,
} from "../../../support/sockets/scripted-speech.ts";
import { connectV1, type V1Client } from "../../../support/sockets/v1-client.ts";

const audioParameters = { audioFormat: "audio/pcm", samplingRate: scriptedRate };
const streaming = { speaker: "abbie", audioParameters };
const oneShot = (text: string) => ({ ...streaming, text });
/** The bytes of one scripted synthesis as PCM. */
const synthesisBytes = 2 * scriptedRate * scriptedSeconds;

let api: TestApi;
let model: ScriptedModel;
const open: V1Client[] = [];

beforeAll(async () => {
  model = await startScriptedModel(speakWords);
  api = await startTestApi(model.url);
});

beforeEach(() => {
  model.calls.length = 0;
  model.script = speakWords;
});

afterEach(() => {
  for (const { client } of open.splice(0)) client.socket.terminate();
});

afterAll(async () => {
  await api.stop();
  await model.close();
});

async function connect(
  encoding: EnvelopeEncoding = "json",
  options: ConnectOptions & { readonly path?: string; readonly url?: string } = {},
): Promise<V1Client> {
  const connected = await connectV1(options.url ?? api.url, encoding, { key: api.key, ...options });
  open.push(connected);
  return connected;
}

const spokenTexts = () => model.calls.map(({ invocation }) => invocation.text);
const kindOf = (client: V1Client, contextId = "") => client.last("error", contextId)?.kind;

describe.each(["json", "binary"] as const)("in %s (11.16)", (encoding) => {
  it("the first message is ready, and lists the languages", async () => {
    const client = await connect(encoding);
    await client.until("ready");
    expect(client.client.socket.protocol).toBe(`rime.v1.${encoding}`);
    expect(client.messages[0]?.contextId).toBe("");
    expect(client.last("ready")).toMatchObject({ protocol: 1, languages: ["eng"], defaultLanguage: "eng" });
  });

  it("a context accepts text and sends audio until its end", async () => {
    const client = await connect(encoding);
    client.send("a", { start: streaming });
    await client.until("started", "a");
    expect(client.last("started")?.requestId).toBeTruthy();
    expect(model.calls.length).toBe(0);
    client.send("a", { text: "Hello there. " });
    await client.until("audio", "a");
    await client.settled();
    expect(client.sequence("a")).toEqual(["started", "audio"]);
    client.send("a", { text: "And more." });
    client.send("a", { end: {} });
    client.send("a", { end: {} });
    await client.ended("a");
    await client.settled();
    expect(client.sequence("a")).toEqual(["started", "audio", "done"]);
    expect(client.audio("a").length).toBe(2 * synthesisBytes);
    expect(spokenTexts()).toEqual(["Hello there.", "And more."]);
    expect(client.last("done")?.timestamps).toBeUndefined();
  });

  it("a context that starts with its whole text needs no end, and its id can be used again (11.17)", async () => {
    const client = await connect(encoding);
    for (const count of [1, 2]) {
      client.send("a", { start: oneShot("One. Two.") });
      await client.until("done", "a", count);
    }
    expect(client.sequence("a")).toEqual(["started", "audio", "done", "started", "audio", "done"]);
    expect(spokenTexts()).toEqual(["One. Two.", "One. Two."]);
  });

  it("a message without a context id belongs to the context default", async () => {
    const client = await connect(encoding);
    client.send("", { start: oneShot("One.") });
    await client.ended("default");
    expect(client.sequence("default")).toEqual(["started", "audio", "done"]);
  });
});

describe("text", () => {
  it("is synthesized with the default strategy, also without white space between sentences", async () => {
    const client = await connect();
    client.send("a", { start: streaming });
    for (const text of ["One.", "Two ", "Three."]) client.send("a", { text });
    client.send("a", { end: {} });
    await client.ended("a");
    expect(spokenTexts().join(" ")).toBe("One. Two Three.");
  });

  it("is synthesized at the end of each sentence with SPLIT_STRATEGY_ACCUMULATE_SENTENCE", async () => {
    const client = await connect();
    const start = { ...streaming, splitStrategy: "SPLIT_STRATEGY_ACCUMULATE_SENTENCE" };
    client.send("a", { start });
    for (const text of ["Dr.", " Smith", " takes", " 2.5", " ml."]) client.send("a", { text });
    await client.settled();
    expect(spokenTexts()).toEqual([]);
    client.send("a", { text: " Ne" });
    await client.until("audio", "a");
    client.send("a", { text: "xt" });
    client.send("a", { end: {} });
    await client.ended("a");
    expect(spokenTexts()).toEqual(["Dr. Smith takes 2.5 ml.", "Next"]);
  });

  it("is synthesized as a whole with SPLIT_STRATEGY_NONE", async () => {
    const client = await connect();
    client.send("a", { start: { ...streaming, splitStrategy: "SPLIT_STRATEGY_NONE" } });
    for (const text of ["One. ", "Two."]) client.send("a", { text });
    await client.settled();
    expect(spokenTexts()).toEqual([]);
    client.send("a", { end: {} });
    await client.ended("a");
    expect(spokenTexts()).toEqual(["One. Two."]);
  });

  it.each([
    ["whole", { start: oneShot("   ") }],
    ["streamed", { start: streaming }],
  ] as const)("without words, %s, causes an error and no done", async (_, start) => {
    const client = await connect();
    client.send("a", start);
    client.send("a", { text: "  " });
    client.send("a", { end: {} });
    await client.ended("a");
    expect(client.sequence("a")).toEqual(["started", "error"]);
    expect(kindOf(client, "a")).toBe("invalid_input");
  });

  it("after the end, for a context with its whole text, or for an unknown context is invalid_input (11.18)", async () => {
    model.script = speakAndWait;
    const client = await connect();
    client.send("ended", { start: streaming });
    client.send("ended", { text: "One." });
    client.send("ended", { end: {} });
    client.send("whole", { start: oneShot("Two.") });
    await client.until("audio", "ended");
    await client.until("audio", "whole");
    for (const contextId of ["ended", "whole"]) client.send(contextId, { text: "More." });
    await client.until("error", "", 2);
    client.send("unknown", { text: "More." });
    await client.ended("unknown");
    expect(kindOf(client)).toBe("invalid_input");
    expect(kindOf(client, "unknown")).toBe("invalid_input");
    expect(client.sequence("ended")).toEqual(["started", "audio"]);
    expect(client.sequence("whole")).toEqual(["started", "audio"]);
  });
});

describe("audio", () => {
  it("is one stream with one header, for any number of sentences", async () => {
    const client = await connect();
    for (const [contextId, audioFormat] of [
      ["wav", "audio/wav"],
      ["ogg", "audio/ogg;codecs=opus"],
      ["webm", "audio/webm;codecs=opus"],
    ] as const) {
      client.send(contextId, {
        start: { ...streaming, audioParameters: { audioFormat, samplingRate: 8000 } },
      });
      client.send(contextId, { text: "One." });
      await client.until("audio", contextId);
      client.send(contextId, { text: "Two." });
      client.send(contextId, { end: {} });
      await client.ended(contextId);
    }
    const wav = client.audio("wav");
    expect(wav.subarray(0, 4).toString("latin1")).toBe("RIFF");
    expect(wav.length).toBe(44 + 2 * synthesisBytes);
    for (const container of ["ogg", "webm"]) {
      const decoded = await decodeAudio(client.audio(container));
      expect(client.audio(container).toString("latin1").split("OpusHead").length - 1).toBe(1);
      expect(decoded).toMatchObject({ codec: "opus", rate: 48_000 });
      expect(decoded.samples.length).toBe(2 * scriptedSeconds * 48_000);
    }
    expect(model.calls.length).toBe(6);
  });

  it("has word timestamps in done on request, without the effect of the time scale", async () => {
    const client = await connect("binary");
    const scaled = { ...audioParameters, timeScaleFactor: 2 };
    client.send("a", { start: { ...streaming, audioParameters: scaled, timestamps: { enable: true } } });
    client.send("a", { text: "Hello there." });
    await client.until("audio", "a");
    client.send("a", { text: "Next." });
    client.send("a", { end: {} });
    await client.ended("a");
    const report = client.last("done", "a")?.timestamps;
    expect(report?.status?.code).toBe(0);
    expect(report?.spans.map(({ text }) => text)).toEqual(["Hello", "there.", "Next."]);
    const seconds = report?.spans.map(({ start, end }) =>
      [start, end].map((time) => Number(time?.seconds) + (time?.nanos ?? 0) / 1e9),
    );
    expect(seconds).toEqual([
      [0, 0.075],
      [0.075, 0.15],
      [0.15, 0.3],
    ]);
    expect(model.calls[0]?.invocation.stretch).toBe(2);
  });
});

describe("pronunciations", () => {
  const customLexicon = [{ spelling: "Cache", pronunciation: '" k { S' }];

  it.each(["json", "binary"] as const)("of a context apply to its words, in %s", async (encoding) => {
    const client = await connect(encoding);
    client.send("a", { start: { ...oneShot("The cache."), customLexicon } });
    client.send("b", { start: { ...oneShot("The cache."), speaker: "luna", customLexicon } });
    client.send("c", { start: oneShot("The cache.") });
    for (const contextId of ["a", "b", "c"]) await client.ended(contextId);
    const lexicons = model.calls.map(({ invocation }) => [invocation.modelId, invocation.lexicon]);
    expect(lexicons).toContainEqual(["mist", { cache: "k1@S" }]);
    expect(lexicons).toContainEqual(["arcana", { cache: "k1@S" }]);
    expect(lexicons).toContainEqual(["mist", undefined]);
  });

  it("of the connection's defaults apply to a context without its own pronunciations", async () => {
    const client = await connect();
    client.send("", { config: { defaults: { customLexicon } } });
    client.send("a", { start: oneShot("The cache.") });
    client.send("b", {
      start: { ...oneShot("The cache."), customLexicon: [{ spelling: "the", pronunciation: "D @" }] },
    });
    for (const contextId of ["a", "b"]) await client.ended(contextId);
    expect(model.calls.map(({ invocation }) => invocation.lexicon)).toEqual(
      expect.arrayContaining([{ cache: "k1@S" }, { the: "D0x" }]),
    );
  });
});

describe("concurrent contexts (11.17)", () => {
  it("are synthesized at the same time, with sixteen contexts", async () => {
    const { promise: allBegan, resolve } = Promise.withResolvers<void>();
    model.script = async (call) => {
      await call.head(scriptedRate);
      await call.tone(800, scriptedRate);
      if (model.calls.length === 16) resolve();
      await allBegan;
      await call.tone(800, scriptedRate);
      await call.end(1600);
    };
    const client = await connect("binary");
    const ids = Array.from({ length: 16 }, (_, i) => `context ${i}`);
    for (const contextId of ids) client.send(contextId, { start: oneShot(`Text of ${contextId}.`) });
    await client.until("done", undefined, 16);
    const cases = client.messages.map(({ payload }) => payload.case);
    expect(cases.slice(0, cases.indexOf("done")).filter((name) => name === "audio").length).toBeGreaterThan(
      15,
    );
    for (const contextId of ids) {
      expect(client.sequence(contextId)).toEqual(["started", "audio", "done"]);
      expect(client.audio(contextId).length).toBe(2 * 1600);
    }
  });

  it("are limited to 64", async () => {
    const client = await connect();
    for (let i = 0; i <= 64; i++) client.send(`${i}`, { start: streaming });
    await client.ended("64");
    expect(kindOf(client, "64")).toBe("resource_exhausted");
    client.send("0", { cancel: {} });
    client.send("64", { start: oneShot("One.") });
    await client.until("done", "64");
  });

  it("fail independently", async () => {
    model.script = async (call) => {
      if (call.invocation.text !== "Bad.") return speakWords(call);
      await call.head(scriptedRate);
      await call.tone(1600, scriptedRate);
      await call.flushed();
      call.cut();
    };
    const client = await connect();
    client.send("good", { start: streaming });
    client.send("bad", { start: oneShot("Bad.") });
    await client.ended("bad");
    client.send("good", { text: "Good." });
    client.send("good", { end: {} });
    await client.ended("good");
    expect(client.sequence("bad")).toEqual(["started", "audio", "error"]);
    expect(client.last("error", "bad")).toMatchObject({ kind: "internal" });
    expect(client.last("error", "bad")?.requestId).toBe(client.last("started", "bad")?.requestId);
    expect(client.sequence("good")).toEqual(["started", "audio", "done"]);
  });

  it("are rejected with resource_exhausted when no stream is free", async () => {
    model.script = (call) => call.refuse(503, { code: "saturated", detail: "full" });
    const client = await connect();
    client.send("a", { start: oneShot("One.") });
    await client.ended("a");
    expect(kindOf(client, "a")).toBe("resource_exhausted");
    expect(client.client.closing).toBeUndefined();
  });

  it("must have unique ids", async () => {
    const client = await connect();
    client.send("a", { start: streaming });
    client.send("a", { start: streaming });
    await client.until("error", "");
    expect(kindOf(client)).toBe("invalid_input");
    client.send("a", { text: "One." });
    client.send("a", { end: {} });
    await client.ended("a");
    expect(client.sequence("a")).toEqual(["started", "audio", "done"]);
  });
});

describe("cancel (11.17)", () => {
  it("frees the engine, and no message follows cancelled", async () => {
    model.script = speakAndWait;
    const client = await connect();
    client.send("a", { start: streaming });
    client.send("a", { text: "One. Two." });
    await client.until("audio", "a");
    client.send("a", { cancel: {} });
    await client.ended("a");
    await model.calls[0]?.aborted;
    await client.settled();
    expect(client.sequence("a")).toEqual(["started", "audio", "cancelled"]);
    model.script = speakWords;
    client.send("a", { start: oneShot("Again.") });
    await client.until("done", "a");
  });

  it("is counted in the metrics, like open contexts", async () => {
    model.script = speakAndWait;
    const cancelled = () => sampleOf(api.url, "svc_tts_socket_cancelled_total");
    const before = await cancelled();
    const client = await connect();
    for (const contextId of ["a", "b"]) client.send(contextId, { start: oneShot("One.") });
    await client.until("audio", "a");
    await client.until("audio", "b");
    const openContexts = () => sampleOf(api.url, "svc_tts_socket_contexts");
    await eventually("two open contexts", async () => (await openContexts()) === 2);
    client.send("a", { cancel: {} });
    await eventually("one cancelled synthesis", async () => (await cancelled()) === before + 1);
    client.client.socket.terminate();
    await eventually("two cancelled syntheses", async () => (await cancelled()) === before + 2);
    expect(await openContexts()).toBe(0);
  });

  it("of an unknown id gets the message cancelled too", async () => {
    const client = await connect();
    client.send("never", { cancel: {} });
    await client.ended("never");
    expect(client.sequence("never")).toEqual(["cancelled"]);
  });

  it("is implied when a client disconnects (11.14)", async () => {
    model.script = speakAndWait;
    const client = await connect();
    for (const contextId of ["a", "b"]) client.send(contextId, { start: oneShot("One.") });
    await client.until("audio", "a");
    await client.until("audio", "b");
    client.client.socket.terminate();
    await Promise.all(model.calls.map(({ aborted }) => aborted));
  });
});

describe("ready (11.18)", () => {
  it("is sent when an engine is reachable, and an earlier start is then synthesized", async () => {
    const late = await startScriptedModel(speakWords);
    late.ready = false;
    const waiting = await startTestApi(late.url, { timing: { probeIntervalMs: 50 } });
    const client = await connect("json", { url: waiting.url, key: waiting.key });
    client.send("a", { start: oneShot("One.") });
    expect(client.messages).toEqual([]);
    late.ready = true;
    await client.ended("a");
    expect(client.messages[0]?.payload.case).toBe("ready");
    expect(client.sequence("a")).toEqual(["started", "audio", "done"]);
    await waiting.stop();
    await late.close();
  });

  it("is replaced by an error of the kind unavailable if no engine is reachable", async () => {
    const clock = new FakeClock();
    const alone = await startTestApi({ mist: routeTo("http://127.0.0.1:1") }, {}, { clock });
    const client = await connect("json", { url: alone.url, key: alone.key });
    await eventuallyOn(clock, "the close of the socket", () => client.client.closing !== undefined);
    expect(kindOf(client)).toBe("unavailable");
    expect(client.client.closing).toEqual({ code: 1013, reason: "503: try again later" });
    await alone.stop();
  });
});

describe("a client without an Authorization header", () => {
  const withoutKey = { key: undefined };

  it.each(["Api-Key", "Bearer"])("can send its key in the first message, with scheme %s", async (scheme) => {
    const client = await connect("json", withoutKey);
    await client.until("ready");
    const defaults = { ...streaming, text: "ignored" };
    client.send("", { config: { authorization: `${scheme} ${api.key}`, defaults } });
    client.send("a", { start: { text: "One." } });
    await client.ended("a");
    expect(client.sequence("a")).toEqual(["started", "audio", "done"]);
    expect(client.audio("a").length).toBe(synthesisBytes);
  });

  it.each([
    ["a wrong key", { config: { authorization: "Bearer wrong" } }, "unauthenticated"],
    ["no key", { config: { license: "{}" } }, "unauthenticated"],
    ["a start", { start: oneShot("One.") }, "unauthenticated"],
  ])("is rejected with %s", async (_, message, kind) => {
    const client = await connect("json", withoutKey);
    client.send("", message);
    client.send("", { start: oneShot("One.") });
    expect(await client.closed()).toEqual({ code: 1008, reason: "401: unauthenticated" });
    expect(kindOf(client)).toBe(kind);
    expect(model.calls).toEqual([]);
  });

  it("is rejected with a key without the scope", async () => {
    const client = await connect("json", withoutKey);
    client.send("", { config: { authorization: `Bearer ${api.otherKeys.unscoped}` } });
    expect((await client.closed()).code).toBe(1008);
    expect(kindOf(client)).toBe("permission_denied");
  });

  it("is disconnected after ten seconds without a message", async () => {
    const clock = new FakeClock();
    const patient = await startTestApi(model.url, {}, { clock });
    const client = await connect("json", { url: patient.url, ...withoutKey });
    await eventuallyOn(clock, "the message ready", () => client.last("ready") !== undefined);
    await eventuallyOn(clock, "the close of the socket", () => client.client.closing !== undefined, 1000);
    expect(client.client.closing?.code).toBe(1008);
    await patient.stop();
  });
});

describe("invalid messages (11.18)", () => {
  it("with a second key, or a config after another config or after a start, are invalid_input", async () => {
    const client = await connect();
    client.send("", { config: { authorization: `Bearer ${api.key}` } });
    client.send("", { config: { defaults: streaming } });
    client.send("", { config: {} });
    client.send("a", { start: {} });
    client.send("", { config: {} });
    await client.until("error", "", 3);
    expect(kindOf(client)).toBe("invalid_input");
    await client.until("started", "a");
  });

  it("with an id of 129 bytes are invalid_input, and an id of 128 bytes is accepted", async () => {
    const client = await connect("binary");
    client.send("é".repeat(64), { start: oneShot("One.") });
    await client.ended("é".repeat(64));
    client.send(`${"é".repeat(64)}a`, { start: oneShot("One.") });
    await client.until("error", "");
    expect(kindOf(client)).toBe("invalid_input");
  });

  it.each([
    { speaker: "no-such-voice" },
    {},
    { ...streaming, customLexicon: [{ spelling: "cafe", pronunciation: "k q f eI" }] },
  ])("that start a context are an error of the context: %j", async (start) => {
    const client = await connect();
    client.send("a", { start });
    await client.ended("a");
    expect(client.sequence("a")).toEqual(["error"]);
    expect(kindOf(client, "a")).toBe("invalid_input");
  });

  it("without a known payload are invalid_input", async () => {
    const client = await connect();
    client.client.send({ contextId: "a", flush: {} });
    await client.until("error", "");
    expect(kindOf(client)).toBe("invalid_input");
  });

  it.each(["{", "[]", '{"text":"a","end":{}}'])(
    "that cannot be parsed close the socket: %s",
    async (frame) => {
      const client = await connect();
      client.client.send(frame);
      expect((await client.closed()).code).toBe(1007);
      expect(kindOf(client)).toBe("invalid_input");
    },
  );

  it("that are too large close the socket", async () => {
    const client = await connect();
    client.send("a", { start: { ...streaming, text: "a".repeat(100 * 1024) } });
    await client.ended("a");
    client.send("b", { start: { ...streaming, text: "a".repeat(130 * 1024) } });
    expect((await client.closed()).code).toBe(1009);
  });
});

describe("the upgrade", () => {
  it.each([
    ["rime.v1.binary, rime.v1.json", "rime.v1.binary"],
    ["other, rime.v1.json, rime.v1.binary", "rime.v1.json"],
    ["other", undefined],
    [undefined, undefined],
  ])("with the subprotocols %s selects %s", async (offer, expected) => {
    expect(await answeredSubprotocol(offer)).toEqual({ status: 101, subprotocol: expected });
  });

  it("without a subprotocol selects JSON", async () => {
    const client = await connect("json", { subprotocol: undefined });
    await client.until("ready");
  });

  it.each([
    ["/coda/ws", "lyra", "arcana"],
    ["/v1/svc-tts/ws", "abbie", "mist"],
    ["/mistv2/ws", "abbie", "mistv2"],
    ["/ws?modelId=mistv2", "abbie", "mistv2"],
  ])("at %s with the voice %s uses the model %s (11.20, 11.21)", async (path, speaker, modelId) => {
    const client = await connect("json", { path });
    client.send("a", { start: { ...oneShot("One."), speaker: speaker === "lyra" ? "luna" : speaker } });
    await client.ended("a");
    expect(model.calls[0]?.invocation.modelId).toBe(modelId);
  });
});

/** Sends an upgrade with subprotocols. Published clients check the response before they use the socket. */
function answeredSubprotocol(offer: string | undefined): Promise<object> {
  const { promise, resolve, reject } = Promise.withResolvers<object>();
  const headers = {
    ...{ authorization: `Bearer ${api.key}`, connection: "Upgrade", upgrade: "websocket" },
    ...{ "sec-websocket-key": Buffer.alloc(16).toString("base64"), "sec-websocket-version": "13" },
    ...(offer !== undefined && { "sec-websocket-protocol": offer }),
  };
  const upgrade = request(`${api.url}/ws`, { headers });
  upgrade.on("upgrade", ({ statusCode, headers: answer }, socket) => {
    socket.destroy();
    resolve({ status: statusCode, subprotocol: answer["sec-websocket-protocol"] });
  });
  upgrade.on("response", ({ statusCode }) =>
    reject(new Error(`the server rejected the upgrade with status ${statusCode}`)),
  );
  upgrade.on("error", reject);
  upgrade.end();
  return promise;
}

it("a context stays open for five minutes without text (11.18)", async () => {
  const clock = new FakeClock();
  const patient = await startTestApi(model.url, {}, { clock });
  const client = await connect("json", { url: patient.url, key: patient.key });
  await eventuallyOn(clock, "the message ready", () => client.last("ready") !== undefined);
  client.send("a", { start: streaming });
  client.send("a", { text: "One." });
  await client.until("audio", "a");
  for (let passedMs = 0; passedMs < 300_000; passedMs += 10_000) {
    await clock.advance(10_000);
    // The client's pongs have to arrive between two pings of the server.
    await client.settled();
    await client.settled();
  }
  client.send("a", { text: "Two." });
  client.send("a", { end: {} });
  await client.ended("a");
  expect(client.sequence("a")).toEqual(["started", "audio", "done"]);
  expect(client.audio("a").length).toBe(2 * synthesisBytes);
  await patient.stop();
});

it("each synthesis counts towards the stream limit of its key, and a context beyond the limit fails", async () => {
  model.script = speakAndWait;
  const limited = await startTestApi(model.url, { keyLimits: { streams: 1 } });
  const client = await connect("json", { url: limited.url, key: limited.key });
  client.send("a", { start: oneShot("One.") });
  await client.until("audio", "a");
  client.send("b", { start: oneShot("Two.") });
  await client.ended("b");
  expect(kindOf(client, "b")).toBe("resource_exhausted");
  client.send("a", { cancel: {} });
  await client.ended("a");
  model.script = speakWords;
  let attempts = 0;
  await eventually("an accepted context", async () => {
    const contextId = `c${attempts++}`;
    client.send(contextId, { start: oneShot("Three.") });
    await client.ended(contextId);
    return client.sequence(contextId).includes("done");
  });
  await limited.stop();
});

it("a draining server finishes contexts, rejects new contexts, and closes sockets with 1001 (11.15)", async () => {
  const draining = await startTestApi(model.url, { drainSeconds: 300 });
  const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
  model.script = async (call) => {
    await call.head(scriptedRate);
    await call.tone(1600, scriptedRate);
    await mayEnd;
    await call.tone(1600, scriptedRate);
    await call.end(3200);
  };
  const [idle, speaking] = await Promise.all(
    [1, 2].map(() => connect("json", { url: draining.url, key: draining.key })),
  );
  if (!idle || !speaking) throw new Error("the test needs two connected clients");
  speaking.send("a", { start: streaming });
  speaking.send("a", { text: "One." });
  await speaking.until("audio", "a");
  const stopped = draining.stop();
  expect(await idle.closed()).toEqual({ code: 1001, reason: "going away" });
  speaking.send("b", { start: oneShot("Two.") });
  await speaking.ended("b");
  expect(kindOf(speaking, "b")).toBe("unavailable");
  speaking.send("a", { end: {} });
  end();
  expect(await speaking.closed()).toEqual({ code: 1001, reason: "going away" });
  expect(speaking.sequence("a")).toEqual(["started", "audio", "done"]);
  expect(speaking.audio("a").length).toBe(2 * 3200);
  await stopped;
});
