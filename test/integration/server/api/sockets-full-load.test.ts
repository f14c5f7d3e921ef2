/**
 * Tests sockets at full load, by the order of events. `make bench` measures the times (docs/benchmarks.md, WebSockets
 * under load).
 */
import { afterEach, expect, it } from "vitest";
import { voices } from "../../../../config/contract/voices.ts";
import { eventually } from "../../../support/eventually.ts";
import { routeTo, sampleOf, startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { modelTier } from "../../../support/server/model-tier.ts";
import { type ReceivedSpan, startOtlpReceiver, tracingTo } from "../../../support/server/otlp.ts";
import { type Call, startScriptedModel } from "../../../support/server/scripted-model.ts";
import { connectSocket, type SocketClient } from "../../../support/sockets/client.ts";
import { connectV1, type V1Client } from "../../../support/sockets/v1-client.ts";

const open: SocketClient[] = [];

afterEach(() => {
  for (const { socket } of open.splice(0)) socket.terminate();
});

/** A text that arcana synthesizes for much longer than a test takes. */
const longText = "The quick brown fox jumps over the lazy dog and rests for a while. ".repeat(140);
const streams = 2;
const rate = 24_000;
/** The audio that the scripted model sends at once. */
const chunkSamples = rate / 10;

interface Speaking {
  /** Whether the client received audio, and whether it received the end of the context. */
  hasAudio(): boolean;
  isOver(): boolean;
  cancel(): void;
  cancelled(): Promise<void>;
}

/** Opens a socket in its own trace, and starts a context with the long text. */
type Start = (api: TestApi, traceId: string) => Promise<Speaking>;

const startV1: Start = async (api, traceId) => {
  const client: V1Client = await connectV1(api.url, "binary", { key: api.key, headers: traceOf(traceId) });
  open.push(client.client);
  client.send("a", {
    start: { text: longText, speaker: "luna", audioParameters: { audioFormat: "audio/pcm" } },
  });
  return {
    hasAudio: () => client.sequence("a").includes("audio"),
    isOver: () => client.sequence("a").some((name) => !["started", "audio"].includes(name)),
    cancel: () => client.send("a", { cancel: {} }),
    cancelled: () => client.until("cancelled", "a"),
  };
};

const startWs3: Start = async (api, traceId) => {
  const path = "/ws3?modelId=arcana&speaker=luna&audioFormat=pcm&samplingRate=24000&segment=never";
  const client = await connectSocket(api.url, path, { key: api.key, headers: traceOf(traceId) });
  open.push(client);
  client.send({ text: longText, contextId: "a" }, { operation: "flush" });
  return {
    hasAudio: () => client.ofType("chunk").length > 0,
    isOver: () => client.ofType("done").length > 0,
    cancel: () => client.send({ operation: "clear" }),
    cancelled: () => client.until("done"),
  };
};

const traceOf = (traceId: string) => ({ traceparent: `00-${traceId}-00f067aa0ba902b7-01` });

it("a cancelled context frees its stream for the next context, and causes no further phrase, on /ws3 and v1 (11.17)", async () => {
  const receiver = await startOtlpReceiver();
  const tier = await modelTier({
    ...{ tier: "arcana", tokens: { kind: "fixed", tokens: ["internal-token"] } },
    ...{ maxConcurrentStreams: streams, queueDeadlineMs: 600_000 },
    tracing: tracingTo(receiver.url, "model"),
  });
  const tracing = tracingTo(receiver.url, "api");
  const api = await startTestApi({ arcana: routeTo(tier.url) }, { voices, tracing });
  const traces = ["a", "b", "c", "d"].map((digit) => digit.repeat(32));
  const starts = [startWs3, startV1, startV1, startWs3];
  const all: Speaking[] = [];
  const start = async () => all.push(await (starts[all.length] ?? startV1)(api, traces[all.length] ?? ""));
  for (let i = 0; i < streams; i++) await start();
  await eventually("both streams speak", () => all.every((context) => context.hasAudio()));
  for (let i = 0; i < streams; i++) await start();
  const queued = () => sampleOf(tier.url, "svc_tts_model_queue_depth");
  await eventually("the other contexts wait", async () => (await queued()) === streams);

  for (let i = 0; i < streams; i++) {
    all[i]?.cancel();
    await all[i]?.cancelled();
    const next = streams + i;
    await eventually("the next context speaks", () => all[next]?.hasAudio());
    expect(all.map((context) => context.hasAudio())).toEqual(all.map((_, at) => at <= next));
    expect(all.map((context) => context.isOver())).toEqual(all.map((_, at) => at <= i));
  }
  for (const { socket } of open.splice(0)) socket.terminate();
  await api.stop();
  await tier.stop(); // This sends the last spans.
  const spans = receiver.spans();
  await receiver.close();
  for (let i = 0; i < streams; i++) {
    const begun = spanOf(spans, traces[streams + i], "synthesis");
    const phrases = spans.filter(({ traceId, name }) => traceId === traces[i] && name === "engine");
    expect(phrases.length).toBeGreaterThan(0);
    expect(phrases.filter(({ startMs }) => startMs > begun.startMs)).toEqual([]);
  }
});

function spanOf(spans: readonly ReceivedSpan[], trace: string | undefined, wanted: string): ReceivedSpan {
  const found = spans.find(
    ({ traceId, name, service }) => traceId === trace && name === wanted && service === "model",
  );
  if (!found) throw new Error(`there is no span ${wanted} of the trace ${trace}`);
  return found;
}

const contexts = 32;
const chunksPerContext = 5;

it("each chunk reaches its client before the model sends the next one, with 32 contexts at once (11.9)", async () => {
  const received = new Map<string, () => number>();
  const speakInTurn = async (call: Call) => {
    const { text } = call.invocation;
    await call.head(rate);
    for (let sent = 0; sent < chunksPerContext; sent++) {
      await call.tone(chunkSamples, rate);
      const expected = 2 * (sent + 1) * chunkSamples;
      await eventually(`${text} has chunk ${sent}`, () => (received.get(text)?.() ?? 0) >= expected);
    }
    await call.end(chunksPerContext * chunkSamples);
  };
  const model = await startScriptedModel(speakInTurn);
  const api = await startTestApi(model.url);
  await api.license({ maxStreams: contexts });
  const clients = await Promise.all(
    Array.from({ length: contexts }, async (_, i) => {
      const path = `/ws3?speaker=abbie&modelId=mist&audioFormat=pcm&samplingRate=${rate}`;
      const client = await connectSocket(api.url, path, { key: api.key });
      open.push(client);
      received.set(`Text ${i}.`, () => client.audio.length);
      return client;
    }),
  );
  for (const [i, client] of clients.entries())
    client.send({ text: `Text ${i}. `, contextId: `${i}` }, { operation: "flush" });
  await Promise.all(clients.map((client) => client.until("done")));
  for (const client of clients) {
    expect(client.sequence).toEqual(["chunk", "timestamps", "done"]);
    const chunks = client.ofType("chunk").map(({ data }) => Buffer.from(String(data), "base64").length);
    const whole = 2 * chunkSamples;
    const [first = 0] = chunks;
    const firstMs = (first * 1000) / (2 * rate);
    expect(firstMs).toBeGreaterThanOrEqual(20);
    expect(firstMs).toBeLessThanOrEqual(40);
    expect(chunks).toEqual([
      first,
      whole - first,
      ...Array.from({ length: chunksPerContext - 1 }, () => whole),
    ]);
  }
  await api.stop();
  await model.close();
});
