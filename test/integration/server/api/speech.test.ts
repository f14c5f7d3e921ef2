import { once } from "node:events";
import { connect } from "node:net";
import { Client } from "undici";
import { afterEach, describe, expect, it } from "vitest";
import { Failure } from "../../../../server/contract/errors.ts";
import { unsentBytes } from "../../../../server/http/send-queues.ts";
import type { ApiSettings } from "../../../../server/start/api-settings.ts";
import type { ApiEnvironment } from "../../../../server/start/api-tier.ts";
import { eventually } from "../../../support/eventually.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import {
  rawRequest,
  rawSpeech,
  refusesConnections,
  routeTo,
  sampleOf,
  startTestApi,
  type TestApi,
} from "../../../support/server/api-tier.ts";
import {
  type Call,
  fail,
  type ScriptedModel,
  speakTone,
  speakUntil,
  startScriptedModel,
} from "../../../support/server/scripted-model.ts";
import { heldRules } from "../../contract/held-rules.ts";

const held = heldRules(import.meta.filename);

const open: { stop?: () => Promise<void>; close?: () => Promise<void> }[] = [];

afterEach(async () => {
  for (const thing of open.splice(0).reverse()) await (thing.stop ?? thing.close)?.call(thing);
});

async function start(
  script: ScriptedModel["script"],
  settings: Partial<ApiSettings> = {},
  environment: ApiEnvironment = {},
) {
  const model = await startScriptedModel(script);
  open.push(model);
  const api = await startOver([model], settings, environment);
  return { model, api };
}

async function startOver(
  models: readonly ScriptedModel[],
  settings: Partial<ApiSettings> = {},
  environment: ApiEnvironment = {},
): Promise<TestApi> {
  const routes = routeTo(...models.map(({ url }) => url));
  const api = await startTestApi({ mist: routes, mistv2: routes, arcana: routes }, settings, environment);
  open.push(api);
  return api;
}

/** Stops the server before the end of the test. */
function stop(api: TestApi): Promise<void> {
  open.splice(open.indexOf(api), 1);
  return api.stop();
}

const arcana = { speaker: "luna", text: "Hello there." };
const mist = { speaker: "abbie", text: "Hello there." };

describe("a successful response", () => {
  it("has the model, the voice, the request ID and the time to first audio in its headers", async () => {
    const { api, model } = await start(speakTone(0.1));
    const answer = await api.post(arcana, { accept: "audio/wav", "x-request-id": "mine-1" });
    await answer.arrayBuffer();
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "audio/wav",
      "x-accel-buffering": "no",
      "x-model": "arcana",
      "x-voice": "luna",
      "x-request-id": "mine-1",
      vary: "Accept",
      "cache-control": "no-store",
      "server-timing": expect.stringMatching(/^first-audio;dur=\d+\.\d$/),
    });
    expect(model.calls[0]?.headers).toMatchObject({
      authorization: "Bearer internal-token",
      "x-request-id": "mine-1",
    });
  });
});

describe("a client that disconnects", () => {
  it("stops the model, before and after the first audio", async () => {
    const never = new Promise<void>(() => undefined);
    for (const piece of [0, 2400]) {
      const { api, model } = await start(async (call) => {
        await call.head(24_000);
        if (piece > 0) await call.tone(piece, 24_000);
        await never;
      });
      const controller = new AbortController();
      const { signal } = controller;
      const request = api.post(arcana, { accept: "audio/wav" }, { signal });
      const rejection = expect(request.then((answer) => answer.arrayBuffer())).rejects.toThrow(/aborted/);
      await eventually("the invocation", () => model.calls.length === 1);
      if (piece > 0) await request;
      controller.abort();
      await rejection;
      await model.calls[0]?.aborted;
    }
    held.exercised("hang up");
  });
});

describe("a model that fails", () => {
  it("after the first audio, causes a stream without the terminating chunk", async () => {
    for (const ending of ["cut", "error", "short"] as const) {
      const firstAudioIsOut = Promise.withResolvers<void>();
      const { api } = await start(async (call) => {
        await call.head(24_000);
        await call.tone(2400, 24_000);
        await firstAudioIsOut.promise;
        if (ending === "cut") call.cut();
        else if (ending === "short") await call.end(9999);
        else await call.send({ kind: "error", failure: new Failure("model_failed", "it broke") });
      });
      const { text } = await rawRequest(
        api.url,
        rawSpeech(api, arcana, "audio/wav"),
        firstAudioIsOut.resolve,
      );
      expect(text).toContain("200 OK");
      expect(text).toContain("RIFF");
      expect(text.endsWith("0\r\n\r\n")).toBe(false);
    }
  });

  it("after the first audio, causes a 502 for a JSON response, which is sent at the end", async () => {
    const { api } = await start(async (call) => {
      await call.head(24_000);
      await call.tone(2400, 24_000);
      await call.flushed();
      call.cut();
    });
    const answer = await api.post({ ...mist, audioFormat: "wav" }, { accept: "application/json" });
    expect(answer.status).toBe(502);
    expect(await answer.json()).toMatchObject({ code: "model_failed" });
  });

  it("before the first audio, causes a 502 with problem details", async () => {
    const { api } = await start(fail({ seconds: 0 }));
    const answer = await api.post(arcana, { accept: "audio/wav" });
    expect(answer.status).toBe(502);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect(await answer.json()).toMatchObject({ code: "model_failed", detail: "The voice broke." });
    held.exercised("502");
  });

  it("before the first byte of the response, is replaced by another replica", async () => {
    const refuse = (call: Call) =>
      call.refuse(503, { code: "saturated", detail: "full" }, { "retry-after": "7" });
    // The first selected replica disconnects, the second is saturated, and the third responds.
    const scripts = [(call: Call) => call.cut(), refuse, speakTone(0.1)];
    const newReplica = () => {
      let own: ScriptedModel["script"] | undefined;
      return startScriptedModel((call) => {
        own ??= scripts.shift();
        return own?.(call);
      });
    };
    const models = [await newReplica(), await newReplica(), await newReplica()];
    open.push(...models);
    const api = await startOver(models);
    const answer = await api.post(arcana, { accept: "audio/wav" });
    expect(answer.status).toBe(200);
    expect((await answer.arrayBuffer()).byteLength).toBe(44 + 4800);
    // The API tier tries a replica that disconnected again, because the connection may have been stale.
    expect(models.map(({ calls }) => calls.length).sort()).toEqual([1, 1, 2]);
  });

  it("after the first audio, is replaced once for a JSON response", async () => {
    const dying = fail();
    const first = await startScriptedModel(dying);
    const second = await startScriptedModel(dying);
    open.push(first, second);
    const api = await startOver([first, second]);
    const send = () => api.post({ ...mist, samplingRate: 24_000 }, { accept: "*/*" });
    expect((await send()).status).toBe(502);
    expect([first.calls.length, second.calls.length]).toEqual([1, 1]);

    let invocations = 0;
    for (const model of [first, second]) {
      model.script = (call) => (invocations++ === 0 ? dying(call) : speakTone(0.5)(call));
    }
    const answer = await send();
    expect(answer.status).toBe(200);
    const { audioContent } = (await answer.json()) as { audioContent: string };
    expect(Buffer.from(audioContent, "base64").length).toBe(44 + 2 * 12_000);
    expect([first.calls.length, second.calls.length]).toEqual([2, 2]);
    const retries = 'svc_tts_retries_total{model="mist",error_message="model_failed"}';
    await eventually("two retries in the metrics", async () => (await sampleOf(api.url, retries)) === 2);
  });

  it("with an error response, has its message, fields and Retry-After sent to the client", async () => {
    const { api, model } = await start((call) => {
      call.refuse(400, {
        code: "invalid_request",
        detail: "braces do not match",
        errors: [{ pointer: "/text", detail: "braces do not match" }],
      });
    });
    const invalid = await api.post(arcana, { accept: "audio/wav" });
    expect(invalid.status).toBe(400);
    expect(await invalid.json()).toMatchObject({ errors: [{ pointer: "/text" }] });
    model.script = (call) => {
      call.refuse(503, { code: "saturated", detail: "full" }, { "retry-after": "7" });
    };
    const full = await api.post(arcana, { accept: "audio/wav" });
    expect(full.status).toBe(503);
    expect(full.headers.get("retry-after")).toBe("7");
  });

  it("causes a 503 if it is unreachable, and a 504 if it never sends audio", async () => {
    const { api: impatient, model } = await start(() => undefined, {
      timing: { firstAudioTimeoutMs: 200 },
    });
    const silent = await impatient.post(arcana, { accept: "audio/wav" });
    expect(await silent.json()).toMatchObject({ status: 504, code: "deadline_exceeded" });
    held.exercised("504");
    const patient = await startOver([model]);
    await model.close();
    const unreachable = await patient.post(arcana, { accept: "audio/wav" });
    expect(await unreachable.json()).toMatchObject({ status: 503, code: "model_unreachable" });
    expect(unreachable.headers.get("retry-after")).toBeTruthy();
  });
});

describe("a JSON response", () => {
  it("above the size limit is rejected with a hint to use a stream", async () => {
    const { api, model } = await start(speakTone(120), {
      limits: { jsonAudioBytes: 100_000 },
    });
    const answer = await api.post({ ...mist, audioFormat: "wav" }, { accept: "application/json" });
    expect(answer.status).toBe(413);
    expect(await answer.json()).toMatchObject({
      code: "audio_too_large",
      detail: expect.stringContaining("audio/wav"),
    });
    await model.calls[0]?.aborted;
  });
});

describe("a server that shuts down", () => {
  it("rejects incomplete requests with 503, and Vary: Accept", async () => {
    const { api } = await start(speakTone(0.1), { timing: { idleCloseMs: 20_000 } });
    const { hostname, port } = new URL(api.url);
    const request = rawSpeech(api, mist, "audio/wav");
    const socket = connect(Number(port), hostname, () => socket.write(request.slice(0, 20)));
    await once(socket, "connect");
    await eventually("the server to read the first bytes", () => socket.writableLength === 0);
    const stopped = stop(api);
    await eventually("the server to close its port", () => refusesConnections(api.url));
    socket.write(request.slice(20));
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1.1 503 .*\r\nvary: Accept\r\n.*"code":"draining"/s);
    socket.destroy();
    await stopped;
  });

  it("finishes the running stream, accepts no connections, and then ends", async () => {
    const release = Promise.withResolvers<void>();
    const { api } = await start(async (call) => {
      await call.head(24_000);
      await call.tone(2400, 24_000);
      await release.promise;
      await call.tone(2400, 24_000);
      await call.end(4800);
    });
    const running = await api.post(arcana, { accept: "audio/wav" });
    const stopped = stop(api);
    await eventually("the server to close its port", () => refusesConnections(api.url));
    release.resolve();
    expect((await running.arrayBuffer()).byteLength).toBe(44 + 2 * 4800);
    await stopped;
  });

  it("serves requests on kept-alive connections for a short time, with Connection: close", async () => {
    const { api } = await start(speakTone(0.1), { timing: { keepAliveGraceMs: 300_000 } });
    expect((await api.post(arcana, { accept: "audio/wav" })).headers.get("connection")).toBe("keep-alive");
    const stopped = stop(api);
    expect((await fetch(`${api.url}/ready`)).status).toBe(503);
    const last = await api.post(arcana, { accept: "audio/wav" });
    expect(last.status).toBe(200);
    expect(last.headers.get("connection")).toBe("close");
    expect((await last.arrayBuffer()).byteLength).toBeGreaterThan(44);
    await stopped;
  });

  it("serves the next request of a client after the client's stream has ended", async () => {
    const release = Promise.withResolvers<void>();
    const timing = { keepAliveGraceMs: 300, idleCloseMs: 120_000 };
    const { api } = await start(speakUntil(release.promise), { timing });
    // The client has one connection, so it sends the second request when the first request has ended.
    const client = new Client(api.url, { pipelining: 1 });
    const headers = {
      accept: "audio/wav",
      authorization: `Bearer ${api.key}`,
      "content-type": "application/json",
    };
    const body = JSON.stringify(arcana);
    const post = () => client.request({ path: "/v1/svc-tts", method: "POST", headers, body });
    const first = await post();
    const second = post();
    const stopped = stop(api);
    await eventually("the server to close its port", () => refusesConnections(api.url));
    release.resolve();
    expect((await first.body.arrayBuffer()).byteLength).toBe(44 + 2 * 2400);
    expect((await second).headers.connection).toBe("close");
    expect((await (await second).body.arrayBuffer()).byteLength).toBe(44 + 2 * 2400);
    await stopped;
    await client.close();
  });

  it("waits until the kernel has sent its responses", async () => {
    const clock = new FakeClock();
    const { api } = await start(speakTone(8), { drainSeconds: 30 }, { clock });
    const { hostname, port } = new URL(api.url);
    const socket = connect(Number(port), hostname, () => socket.write(rawSpeech(api, arcana, "audio/wav")));
    // The client does not read, so the kernel keeps most of the response in its send queue.
    await eventually("a full send queue", async () => (await unsentBytes(Number(port))) > 100_000);
    const soonMs = clock.monotonicMs() + 1_000;
    let isStopped = false;
    const stopped = stop(api).then(() => {
      isStopped = true;
    });
    await eventually("several checks of the send queue", () => clock.monotonicMs() > soonMs);
    expect(isStopped).toBe(false);
    socket.resume();
    await stopped;
    expect(await unsentBytes(Number(port))).toBe(0);
    socket.destroy();
  });

  it("interrupts streams at the time limit of the drain", async () => {
    const { api } = await start(speakUntil(new Promise(() => undefined)), { drainSeconds: 0.3 });
    const running = await api.post(arcana, { accept: "audio/wav" });
    await stop(api);
    await expect(running.arrayBuffer()).rejects.toThrow();
  });
});
