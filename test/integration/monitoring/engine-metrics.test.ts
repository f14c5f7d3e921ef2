/**
 * Tests the OpenTelemetry metrics of arcana (specification 6.3, 6.4), which its container sends to a real
 * collector.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { stringify } from "yaml";
import { acceptedTokensKey } from "../../../config/contract/names.ts";
import { type Clock, systemClock } from "../../../lib/clock.ts";
import { readTelemetry } from "../../../server/cli/settings/telemetry.ts";
import { lastFlushMs } from "../../../server/telemetry/otlp.ts";
import { startTelemetry } from "../../../server/telemetry/start.ts";
import type { Telemetry } from "../../../server/telemetry/telemetry.ts";
import { CollectorPod } from "../../support/collector.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { hear, internalToken, invoke, modelTier } from "../../support/server/model-tier.ts";
import { type NvidiaSmi, standInNvidiaSmi } from "../../support/server/nvidia-smi.ts";
import {
  type OtlpReceiver,
  type ReceivedMetric,
  startOtlpReceiver,
  startSilentCollector,
} from "../../support/server/otlp.ts";
import { makeTierFiles, startTierProcess } from "../../support/server/tier-process.ts";
import { heldRules } from "../contract/held-rules.ts";

const held = heldRules(import.meta.filename);

const hello = { modelId: "arcana", speaker: "luna", text: "Good morning, everybody." } as const;
const patienceMs = 30_000;
const gpuLoad = "svc.engine.gpu_load";
const ofStreams = [
  "svc.engine.concurrent_pipeline",
  "svc.engine.generated_audio_duration",
  "svc.engine.initial_latency",
  "svc.engine.invocation_request",
];
/** The number of the test, as an attribute of its metrics: metrics of earlier tests may arrive late. */
let test = 0;
/** The interval also limits the wait for the collector's answer, so a short one loses the last flush on a busy machine. */
const environment = () => ({
  OTEL_RESOURCE_ATTRIBUTES: `service.name=voices,test=%2C${test}`,
  OTEL_METRIC_EXPORT_INTERVAL: "2000",
});
const resource = () => ({ "service.name": "voices", test: `,${test}` });

const sending = (url: string, protocol = "http/protobuf") => ({
  OTEL_COLLECTOR_PROTOCOL: protocol,
  OTEL_COLLECTOR_ENDPOINT: url,
});

let receiver: OtlpReceiver;
beforeAll(async () => {
  receiver = await startOtlpReceiver();
});
afterAll(() => receiver.close());
beforeEach(() => {
  test++;
  receiver.posts.length = 0;
});
afterEach(() => {
  vi.unstubAllEnvs();
});

/** Returns the received metrics that have exactly the attributes of this test's environment. */
const received = () => receiver.metrics().filter((metric) => isDeepStrictEqual(metric.resource, resource()));
const names = () => [...new Set(received().map(({ name }) => name))].sort();

/** Returns the last received value of the metric. */
function latest(name: string): ReceivedMetric | undefined {
  return received().findLast((metric) => metric.name === name);
}

const streams = () => latest("svc.engine.concurrent_pipeline")?.points[0]?.value;
const invocations = () => latest("svc.engine.invocation_request")?.points[0]?.value;

/** Records one stream with fixed values. */
function speak(telemetry: Telemetry): void {
  telemetry.invoked();
  telemetry.began();
  telemetry.firstAudio(120);
  telemetry.generated(2.5);
  telemetry.ended();
}

describe("the real collector", () => {
  let collector: CollectorPod;
  beforeAll(async () => {
    collector = await startCollector(receiver.url);
  });
  afterAll(() => collector[Symbol.asyncDispose]());

  it("receives all five metrics of the arcana container by gRPC, with only the attributes of the environment", async () => {
    using gpu = standInNvidiaSmi(["37"]);
    const files = await makeTierFiles();
    writeFileSync(join(files.tokenDir, acceptedTokensKey), internalToken);
    const arcana = await startTierProcess("arcana", files, {
      PATH: gpu.folder,
      OTEL_COLLECTOR_ENDPOINT: `http://127.0.0.1:${collector.ports.grpc}`,
      ...environment(),
    });
    onTestFinished(async () => {
      await arcana.kill("SIGKILL");
      files.remove();
    });
    const { samples, rate } = await hear(arcana.url, hello);
    expect((await invoke(arcana.url, { ...hello, speaker: "unknown" })).status).toBe(400);
    await eventually("a reading of the GPU", () => names().includes(gpuLoad));
    await arcana.kill("SIGTERM");
    await eventually("the last flush", () => invocations() === 2 && streams() === 0);
    expectAllFive(samples.length / rate);
    held.exercised("6.3", "6.4");
  });

  it.each(["http/protobuf", "http/json"])(
    "receives all five metrics by %s, and counts a stream while it runs",
    async (protocol) => {
      using gpu = standInNvidiaSmi(["37"]);
      vi.stubEnv("PATH", gpu.folder);
      const arcana = await modelTier({
        tier: "arcana",
        telemetry: readTelemetry({
          ...sending(`http://127.0.0.1:${collector.ports.http}`, protocol),
          ...environment(),
        }),
      });
      const client = new AbortController();
      await invoke(arcana.url, { ...hello, text: `${hello.text} `.repeat(1_000) }, client.signal);
      await eventually("a stream and the GPU", () => streams() === 1 && names().includes(gpuLoad));
      client.abort();
      await arcana.stop();
      await eventually("the last flush", () => streams() === 0);
      expect(names()).toEqual([...ofStreams, gpuLoad].sort());
    },
  );

  it.each([
    ["nvidia-smi is missing", []],
    ["nvidia-smi prints [N/A]", ["[N/A]"]],
  ])("receives four metrics if %s", async (_what, loads) => {
    using gpu = standInNvidiaSmi(loads);
    // The clock never moves, so the last flush has no time limit: a slow machine needs more time to connect.
    const clock = new FakeClock();
    const endpoint = {
      OTEL_COLLECTOR_ENDPOINT: `127.0.0.1:${collector.ports.grpc}`,
      OTEL_METRIC_EXPORT_INTERVAL: "60000", // The last flush is the only export.
    };
    const telemetry = await start(endpoint, gpu, clock);
    speak(telemetry);
    await eventually("the runs of nvidia-smi", () => gpu.runs().length === loads.length);
    await telemetry.stop();
    await eventually("the last flush", () => invocations() === 1);
    expect(names()).toEqual(ofStreams);
  });
});

/** Checks types, units and values of the metrics after one stream and one rejected request. */
function expectAllFive(audioSeconds: number): void {
  expect(names()).toEqual([...ofStreams, gpuLoad].sort());
  const one = (more: object) => [{ attributes: {}, ...more }];
  expect(latest("svc.engine.invocation_request")).toMatchObject({
    kind: "sum",
    isMonotonic: true,
    unit: "{request}",
    points: one({ value: 2 }),
  });
  expect(latest("svc.engine.concurrent_pipeline")).toMatchObject({
    kind: "sum",
    isMonotonic: false,
    unit: "{pipeline}",
    points: one({ value: 0 }),
  });
  expect(latest(gpuLoad)).toMatchObject({ kind: "gauge", unit: "%", points: one({ value: 37 }) });
  const duration = latest("svc.engine.generated_audio_duration");
  expect(duration).toMatchObject({ kind: "histogram", unit: "s", points: one({ count: 1 }) });
  expect(duration?.points[0]?.sum).toBeCloseTo(audioSeconds, 3);
  const latency = latest("svc.engine.initial_latency");
  expect(latency).toMatchObject({ kind: "histogram", unit: "ms", points: one({ count: 1 }) });
  const { sum = 0, bounds = [] } = latency?.points[0] ?? {};
  expect(sum).toBeGreaterThan(1); // The sum is in milliseconds.
  expect(sum).toBeLessThan(patienceMs);
  expect(bounds.filter((bound) => bound >= 100 && bound <= 500)).toHaveLength(17);
}

const messages: string[] = [];
const log = {
  info: (_facts: object, message: string) => messages.push(message),
  warn: (_facts: object, message: string) => messages.push(message),
};

async function start(
  settings: Record<string, string>,
  gpu: NvidiaSmi,
  clock: Clock = systemClock,
): Promise<Telemetry> {
  vi.stubEnv("PATH", gpu.folder);
  messages.length = 0;
  return startTelemetry(readTelemetry({ ...environment(), ...settings }), log, clock);
}

describe("arcana's metrics", () => {
  let noGpu: NvidiaSmi;
  beforeAll(() => {
    noGpu = standInNvidiaSmi([]);
  });
  afterAll(() => noGpu[Symbol.dispose]());

  it.each([
    ["http/json", "application/json"],
    ["http/protobuf", "application/x-protobuf"],
  ])("are sent by %s as %s, to the path /v1/metrics", async (protocol, type) => {
    const telemetry = await start(sending(receiver.url, protocol), noGpu, new FakeClock());
    await telemetry.stop();
    expect(receiver.posts).toMatchObject([{ path: "/v1/metrics", type }]);
  });

  const failureMessages = () => messages.filter((line) => line.includes("the export of metrics failed"));

  it("are sent by at most two open requests while the collector does not respond, and cause one log message", async () => {
    await using silent = await startSilentCollector();
    const telemetry = await start(sending(silent.url), noGpu);
    await eventually(
      "four requests and a log message",
      () => silent.tries() > 3 && failureMessages().length > 0,
    );
    expect(silent.open()).toBeLessThan(3);
    expect(failureMessages()).toHaveLength(1);
    await telemetry.stop();
  });

  it("cause one log message if they are sent by gRPC and the collector is missing", async () => {
    await using absent = await startSilentCollector({ hangsUp: true });
    const telemetry = await start({ OTEL_COLLECTOR_ENDPOINT: absent.url }, noGpu);
    await eventually("the log message about the failure", () => failureMessages().length > 0);
    const before = absent.tries();
    await eventually("another request", () => absent.tries() > before);
    await telemetry.stop();
    expect(failureMessages()).toHaveLength(1);
  });

  it("delay a stop only for the time limit of the last flush", async () => {
    await using silent = await startSilentCollector();
    const clock = new FakeClock();
    const settings = { ...sending(silent.url), OTEL_METRIC_EXPORT_INTERVAL: "3600000" };
    const telemetry = await start(settings, noGpu, clock);
    const stopped = telemetry.stop();
    await eventually("the last flush", () => silent.tries() === 1);
    await clock.advance(lastFlushMs);
    await stopped;
    expect(silent.open(), "the request of the flush is still open").toBe(1);
  });

  it("are complete after the collector was unavailable", async () => {
    receiver.status = 400;
    const telemetry = await start(sending(receiver.url, "http/json"), noGpu);
    speak(telemetry);
    await eventually("the log message about the failure", () => failureMessages().length > 0);
    receiver.status = 200;
    await eventually("the log message about the recovery", () =>
      messages.includes("the export of metrics works again"),
    );
    await telemetry.stop();
    expect(invocations()).toBe(1);
    expect(latest("svc.engine.initial_latency")?.points[0]).toMatchObject({ count: 1, sum: 120 });
  });
});

/** Starts a collector that receives OTLP in every encoding, and forwards the metrics unchanged as JSON. */
async function startCollector(to: string): Promise<CollectorPod> {
  const protocols = { grpc: { endpoint: "127.0.0.1:4317" }, http: { endpoint: "127.0.0.1:4318" } };
  const sending_queue = { num_consumers: 1 }; // One consumer keeps the order of arrival.
  const config = {
    extensions: { health_check: { endpoint: ":13133" } },
    receivers: { otlp: { protocols } },
    exporters: { otlp_http: { endpoint: to, encoding: "json", compression: "none", sending_queue } },
    service: {
      extensions: ["health_check"],
      telemetry: { metrics: { level: "none" } },
      pipelines: { metrics: { receivers: ["otlp"], exporters: ["otlp_http"] } },
    },
  };
  const container = {
    name: "collector",
    args: ["--config=env:COLLECTOR_CONFIG"],
    env: [{ name: "COLLECTOR_CONFIG", value: stringify(config) }],
  };
  const pod = await CollectorPod.prepare(container, {});
  await pod.start();
  return pod;
}
