import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Client } from "undici";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { eventually } from "../../../support/eventually.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { pythonWith } from "../../../support/python.ts";
import { rawRequest, routeTo, startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { seriesOf } from "../../../support/server/metrics.ts";
import { modelTier } from "../../../support/server/model-tier.ts";
import { type ScriptedModel, speakTone, startScriptedModel } from "../../../support/server/scripted-model.ts";

let model: ScriptedModel;
let api: TestApi;
const body = { speaker: "abbie", text: "Hello." };

beforeAll(async () => {
  model = await startScriptedModel(speakTone(0.2));
  api = await startTestApi({ mist: routeTo(model.url) });
});
afterAll(async () => {
  await api.stop();
  await model.close();
});

async function exposition(url: string, accept = "text/plain"): Promise<string> {
  return (await fetch(`${url}/metrics`, { headers: { accept } })).text();
}

/** Returns the sum of the samples of the metric that have all the labels. */
async function total(name: string, labels: Record<string, string>): Promise<number> {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  return (await exposition(api.url))
    .split("\n")
    .filter((line) => line.startsWith(`${name}{`) && pairs.every((pair) => line.includes(pair)))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

const send = (accept: string) => api.post({ ...body, modelId: "mist", audioFormat: "wav" }, { accept });

async function speak(accept = "audio/pcm"): Promise<void> {
  await (await send(accept)).arrayBuffer();
}

/** Runs an action and waits for the increase of a metric, which is counted when the connection ends. */
async function growth(name: string, labels: Record<string, string>, act: () => Promise<unknown>, by = 1) {
  const before = await total(name, labels);
  await act();
  await eventually(`an increase of ${name} ${JSON.stringify(labels)} by ${by}`, async () => {
    const grown = (await total(name, labels)) - before;
    if (grown > by) throw new Error(`${name} grew by ${grown} instead of ${by}`);
    return grown === by;
  });
}

describe("the API tier counts", () => {
  it("each stream with underruns once", async () => {
    const clock = new FakeClock();
    const shared = api;
    api = await startTestApi({ mist: routeTo(model.url) }, {}, { clock });
    onTestFinished(async () => {
      model.script = speakTone(0.2);
      await api.stop();
      api = shared;
    });
    /**
     * Reads a response to its end. If `late` is set, the clock advances between two chunks. Returns the
     * counter.
     */
    const underrunsAfter = async (accept: string, late: boolean) => {
      let bytesRead = 0;
      model.script = async (call) => {
        await call.head(24_000);
        for (let piece = 0; piece < 3; piece++) {
          const before = bytesRead;
          await call.tone(2_400, 24_000);
          if (accept === "audio/pcm")
            await eventually("the client to read the chunk", () => bytesRead > before);
          if (late) await clock.advance(400);
        }
        await call.end(7_200);
      };
      // Requests and underruns are counted at the end of a response.
      await growth("svc_tts_requests_total", { model: "mist" }, async () => {
        const answer = await send(accept);
        for await (const bytes of answer.body as unknown as AsyncIterable<Uint8Array>)
          bytesRead += bytes.length;
      });
      return total("svc_tts_underruns_total", { model: "mist" });
    };
    expect(await underrunsAfter("application/json", true)).toBe(0);
    expect(await underrunsAfter("audio/pcm", false)).toBe(0);
    expect(await underrunsAfter("audio/pcm", true)).toBe(1);
  });

  it("seconds of audio and of encoding by format, and time to first audio by variant", async () => {
    const before = await total("svc_tts_audio_seconds_total", { format: "mp3" });
    await growth("svc_tts_first_audio_seconds_count", { variant: "stream-mp3" }, () => speak("audio/mpeg"));
    expect((await total("svc_tts_audio_seconds_total", { format: "mp3" })) - before).toBeCloseTo(0.2, 2);
    expect(await total("svc_tts_encode_seconds_total", { format: "mp3" })).toBeGreaterThan(0);
    await growth("svc_tts_first_audio_seconds_count", { variant: "json-wav" }, () =>
      speak("application/json"),
    );
  });

  it("a client that disconnects before the response, with status 499 and outcome gone", async () => {
    const wait = Promise.withResolvers<void>();
    model.script = () => wait.promise;
    const disconnected = { endpoint: "/v1/svc-tts", http_status: "499" };
    const hangUp = new AbortController();
    const calls = model.calls.length;
    await growth("svc_tts_requests_total", { outcome: "gone", voice: "abbie" }, () =>
      growth("http_requests_total", disconnected, async () => {
        const answer = api.post(body, {}, { signal: hangUp.signal });
        await eventually("the invocation", () => model.calls.length > calls);
        hangUp.abort();
        await expect(answer).rejects.toThrow();
      }),
    );
    expect(await total("http_errors_total", disconnected)).toBe(0);
    expect(await total("svc_tts_streams", { model: "mist" })).toBe(0);
    wait.resolve();
    model.script = speakTone(0.2);
  });

  it("a stream that fails after its first byte as an error with status 200, which the client received", async () => {
    model.script = async (call) => {
      await call.head(24_000);
      await call.tone(24_000, 24_000);
      await call.flushed();
      call.cut();
    };
    const labels = { endpoint: "/v1/svc-tts", http_status: "200", error_message: "model_failed" };
    await growth("http_errors_total", labels, () => expect(speak()).rejects.toThrow());
    model.script = speakTone(0.2);
  });

  it("a retry if another replica served a request after a rejection", async () => {
    let invocations = 0;
    // The first selected replica rejects each request.
    const rejectFirst: ScriptedModel["script"] = (call) =>
      invocations++ % 2 === 0
        ? call.refuse(503, { code: "saturated", detail: "full" }, { "retry-after": "1" })
        : speakTone(0.2)(call);
    const replicas = [await startScriptedModel(rejectFirst), await startScriptedModel(rejectFirst)];
    const other = await startTestApi({ mist: routeTo(...replicas.map(({ url }) => url)) });
    const requests = 5;
    for (let i = 0; i < requests; i++) {
      const answer = await other.post(body, { accept: "audio/pcm" });
      expect([answer.status, (await answer.arrayBuffer()).byteLength]).toEqual([200, 0.2 * 16_000 * 2]);
    }
    const line = (await exposition(other.url))
      .split("\n")
      .find((text) => text.startsWith("svc_tts_retries_total{"));
    expect(line).toBe(`svc_tts_retries_total{model="mist",error_message="saturated"} ${requests}`);
    await other.stop();
    for (const replica of replicas) await replica.close();
  });

  it("malformed HTTP requests, and malformed paths", async () => {
    const other = { endpoint: "other", error_message: "malformed_http", http_status: "400", method: "other" };
    await growth("http_errors_total", other, () => rawRequest(api.url, "hello?\r\n\r\n"));
    const lost = { endpoint: "other", error_message: "not_found", http_status: "404", method: "GET" };
    await growth("http_errors_total", lost, () => fetch(`${api.url}/%zz`));
  });
});

describe("1,000 requests with different content", () => {
  it("add no series to the metrics", async () => {
    const client = new Client(api.url, { pipelining: 16 });
    const headers = { authorization: `Bearer ${api.key}`, "content-type": "application/json" };
    const send = async (i: number) => {
      const word = `${i}"}\\n${String.fromCodePoint(0x1f300 + (i % 500))}`;
      const options = [
        { method: "GET", path: `/v1/${encodeURIComponent(word)}` },
        { method: "PROPFIND", path: `/v1/voices?${i}` },
        { method: "POST", path: "/v1/svc-tts", body: JSON.stringify({ speaker: word, text: "x" }) },
        { method: "POST", path: "/v1/svc-tts", body: JSON.stringify({ ...body, modelId: word }) },
        { method: "POST", path: "/v1/svc-tts", body: JSON.stringify({ ...body, audioFormat: word }) },
      ][i % 5];
      if (!options) return;
      const { body: answer } = await client.request({
        ...options,
        headers: { ...headers, accept: `x/${i % 7}` },
      });
      await answer.dump();
    };
    for (let i = 0; i < 50; i++) await send(i);
    const before = seriesOf(await exposition(api.url));
    for (let i = 0; i < 1_000; i += 50)
      await Promise.all(Array.from({ length: 50 }, (_, at) => send(i + at)));
    await client.close();
    const ours = (series: Set<string>) => [...series].filter((line) => /^(http|svc)_/.test(line)).sort();
    expect(ours(seriesOf(await exposition(api.url)))).toEqual(ours(before));
  });
});

describe("the metrics of both tiers", () => {
  it("have the same content in both formats for the Python parsers of Prometheus", async () => {
    await speak();
    const tier = await modelTier();
    await fetch(`${tier.url}/ping`);
    const python = await pythonWith(["prometheus-client==0.21.1"]);
    const program = `
import sys
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics
kind = openmetrics if sys.argv[1] == "openmetrics" else parser
families = list(kind.text_string_to_metric_families(sys.stdin.read()))
print(",".join(sorted({s.name for f in families for s in f.samples if s.name.startswith(("http_", "svc_"))})))
`;
    const read = async (kind: string, text: string) => {
      const running = promisify(execFile)(python, ["-c", program, kind]);
      running.child.stdin?.end(text);
      return (await running).stdout;
    };
    for (const url of [api.url, tier.url]) {
      const plain = await read("text", await exposition(url));
      const open = await read(
        "openmetrics",
        await exposition(url, "application/openmetrics-text; version=1.0.0"),
      );
      expect(plain).toContain("svc_tts_build_info");
      expect(plain).toContain("http_requests_total");
      expect(open).toBe(plain);
    }
    await tier.stop();
  });
});
