import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { voices } from "../../../../config/contract/voices.ts";
import { systemClock } from "../../../../lib/clock.ts";
import { lastFlushMs } from "../../../../server/telemetry/otlp.ts";
import { startTracing } from "../../../../server/tracing/start.ts";
import { eventually } from "../../../support/eventually.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { modelTier } from "../../../support/server/model-tier.ts";
import {
  type OtlpReceiver,
  type ReceivedSpan,
  startOtlpReceiver,
  startSilentCollector,
  tracingTo,
} from "../../../support/server/otlp.ts";
import { type ScriptedModel, speakTone, startScriptedModel } from "../../../support/server/scripted-model.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const callerSpan = "b7ad6b7169203331";
const traceparent = `00-${traceId}-${callerSpan}-01`;
/** The default batch size of the OpenTelemetry specification. A complete batch is sent without a timer. */
const batchSpans = 512;
const text = "A quick look. Then a lengthy sentence follows it.";

let receiver: OtlpReceiver;
beforeEach(async () => {
  receiver = await startOtlpReceiver();
});
afterEach(() => receiver.close());

function named(name: string): ReceivedSpan {
  const span = receiver.spans().find((one) => one.name === name);
  if (!span) throw new Error(`there is no span ${name} among ${receiver.spans().map((one) => one.name)}`);
  return span;
}

describe("a request through both tiers", () => {
  it("is one trace, from the client's span to the engine", async () => {
    const model = await modelTier({
      tokens: { kind: "fixed", tokens: ["internal-token"] },
      tracing: tracingTo(receiver.url, "model"),
    });
    const api = await startTestApi(model.url, { voices, tracing: tracingTo(receiver.url, "api") });
    const answer = await api.post(
      { speaker: "alan", modelId: "mist", text },
      { accept: "audio/wav", traceparent, tracestate: "vendor=1", "x-request-id": "the-id" },
    );
    expect((await answer.arrayBuffer()).byteLength).toBeGreaterThan(10_000);
    await api.stop();
    await model.stop();

    const spans = receiver.spans();
    expect(new Set(spans.map((span) => span.traceId))).toEqual(new Set([traceId]));
    const request = named("POST /v1/svc-tts");
    const call = spans.find(({ name, kind }) => name === "POST /invocations" && kind === 3);
    const invocation = spans.find(({ name, kind }) => name === "POST /invocations" && kind === 2);
    const synthesis = named("synthesis");
    expect(request).toMatchObject({ service: "api", kind: 2, parentSpanId: callerSpan });
    expect(call).toMatchObject({ service: "api", parentSpanId: request.spanId });
    expect(invocation).toMatchObject({ service: "model", parentSpanId: call?.spanId });
    expect(synthesis).toMatchObject({ service: "model", parentSpanId: invocation?.spanId });
    expect(named("encode")).toMatchObject({ service: "api", parentSpanId: request.spanId });
    const admissions = spans.filter(({ name }) => name === "admission").map((span) => span.parentSpanId);
    expect(admissions.sort()).toEqual([request.spanId, invocation?.spanId].sort());
    const engines = spans.filter(({ name }) => name === "engine");
    expect(engines.length).toBeGreaterThan(1);
    for (const { parentSpanId, attributes } of engines) {
      expect(parentSpanId).toBe(synthesis.spanId);
      expect(attributes).toMatchObject({ "svc.engine": "flite" });
    }
    const occupied = spans.filter(({ name }) => name === "engine process");
    expect(occupied.map((span) => span.parentSpanId).sort()).toEqual(
      engines.map((span) => span.spanId).sort(),
    );
    for (const span of spans) {
      const parent = spans.find(({ spanId }) => spanId === span.parentSpanId);
      if (parent) expect(span.startMs).toBeGreaterThanOrEqual(parent.startMs - 1);
      expect(span.endMs).toBeGreaterThanOrEqual(span.startMs);
      expect(span.status.code ?? 0).toBe(0);
    }
    expect(request.attributes).toMatchObject({
      "http.response.status_code": 200,
      "svc.request_id": "the-id",
      "svc.model": "mist",
      "svc.voice": "alan",
      "svc.format": "wav",
    });
    expect(named("encode").attributes["svc.audio_seconds"]).toBeCloseTo(
      Number(synthesis.attributes["svc.audio_seconds"]),
      1,
    );
    const content = JSON.stringify(spans);
    for (const secret of ["quick look", "lengthy", api.key]) expect(content).not.toContain(secret);
  });
});

describe("traces", () => {
  let model: ScriptedModel;
  let api: TestApi;
  const body = { speaker: "abbie", text: "Hello." };
  beforeAll(async () => {
    model = await startScriptedModel(speakTone(0.2));
  });
  afterAll(() => model.close());
  const start = async (more: Parameters<typeof tracingTo>[2] = {}) => {
    api = await startTestApi(model.url, { tracing: tracingTo(receiver.url, "api", more) });
  };
  const speak = async (headers: Record<string, string> = {}) => {
    await (await api.post(body, { accept: "audio/pcm", ...headers })).arrayBuffer();
    return model.calls.at(-1)?.headers;
  };

  it("are disabled by default: no header is forwarded and no span is sent", async () => {
    api = await startTestApi(model.url);
    expect(await speak({ traceparent })).not.toHaveProperty("traceparent");
    await api.stop();
    expect(receiver.posts).toEqual([]);
  });

  it("start a new trace if the client's header is invalid", async () => {
    await start();
    for (const wrong of ["", "00-0-0-01", `00-${"0".repeat(32)}-${callerSpan}-01`, "x".repeat(5000)]) {
      const forwarded = String((await speak({ traceparent: wrong }))?.traceparent);
      expect(forwarded).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
      expect(forwarded).not.toContain("0".repeat(32));
    }
    await api.stop();
    const roots = receiver.spans().filter(({ name }) => name === "POST /v1/svc-tts");
    expect(new Set(roots.map((span) => span.traceId)).size).toBe(4);
    for (const { parentSpanId } of roots) expect(parentSpanId).toBe("");
  });

  it("are not sampled if the client's header disables sampling, and the header is forwarded", async () => {
    await start();
    const forwarded = String((await speak({ traceparent: `00-${traceId}-${callerSpan}-00` }))?.traceparent);
    expect(forwarded).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`));
    await api.stop();
    expect(receiver.spans()).toEqual([]);
  });

  it("have the error code of a failed request, and are errors if the server caused the failure", async () => {
    await start();
    await api.post({ ...body, speaker: "no-such-voice" });
    model.script = (call) => call.refuse(503, { code: "saturated", detail: "full" });
    await api.post(body);
    model.script = speakTone(0.2);
    await api.stop();
    const [wrong, full] = receiver.spans().filter(({ name }) => name === "POST /v1/svc-tts");
    expect(wrong).toMatchObject({ attributes: { "error.type": "invalid_request" } });
    expect(wrong?.status.code ?? 0).toBe(0);
    expect(full).toMatchObject({
      attributes: { "error.type": "saturated", "http.response.status_code": 503 },
      status: { code: 2, message: "saturated" },
    });
    const invocations = receiver.spans().filter(({ name }) => name === "POST /invocations");
    expect(invocations.map(({ attributes }) => attributes["error.type"])).toEqual(["saturated"]);
    expect(JSON.stringify(receiver.spans())).not.toContain("no-such-voice");
  });

  it("are sent as protobuf to the path /v1/traces", async () => {
    await start({ protocol: "http/protobuf" });
    await speak({ traceparent });
    await api.stop();
    const [post] = receiver.posts;
    expect(post).toMatchObject({ path: "/v1/traces", type: "application/x-protobuf" });
    expect(post?.body.includes("POST /v1/svc-tts")).toBe(true);
    expect(post?.body.includes(Buffer.from(traceId, "hex"))).toBe(true);
  });

  it("are dropped while the collector is unavailable, and the outage and the recovery are each logged once", async () => {
    const messages: string[] = [];
    const log = {
      info: (_facts: object, message: string) => messages.push(message),
      warn: (_facts: object, message: string) => messages.push(message),
    };
    const tracing = await startTracing(tracingTo(receiver.url, "api"), log, systemClock);
    receiver.status = 400;
    for (let round = 0; round < 2; round++) {
      for (let span = 0; span < batchSpans; span++) tracing.begin("lost", {}).end();
      await eventually("a rejected batch", () => receiver.refused > round);
    }
    receiver.status = 200;
    tracing.begin("kept", {}).end();
    await tracing.stop();
    expect(messages).toEqual([
      "the export of traces is enabled",
      "the export of traces failed; spans are dropped until the collector responds",
      "the export of traces works again",
    ]);
    expect(receiver.spans().map(({ name }) => name)).toEqual(["kept"]);
  });

  it("delay a stop only for the time limit of the last flush", async () => {
    await using silent = await startSilentCollector();
    const clock = new FakeClock();
    api = await startTestApi(model.url, { tracing: tracingTo(silent.url, "api") }, { clock });
    await speak();
    const stopped = api.stop();
    await eventually("the last flush", () => silent.tries() === 1);
    await clock.advance(lastFlushMs);
    await stopped;
    expect([silent.tries(), silent.open()], "the request of the flush is still open").toEqual([1, 1]);
  });

  it("are linked from the metrics: the exemplar of the time to first audio has the trace id", async () => {
    await start();
    await speak({ traceparent });
    await eventually("the exemplar", async () => {
      const accept = "application/openmetrics-text;version=1.0.0";
      const answer = await fetch(`${api.url}/metrics`, { headers: { accept } });
      return (await answer.text()).includes(`# {trace_id="${traceId}"}`);
    });
    await api.stop();
  });
});
