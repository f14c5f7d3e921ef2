import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rawRequest, startTestApi, type TestApi } from "../../support/api-tier.ts";
import { eventuallyOn, FakeClock } from "../../support/fake-clock.ts";
import { type ScriptedModel, speakTone, startScriptedModel } from "../../support/scripted-model.ts";
import { heldRules } from "../contract/held-rules.ts";

const held = heldRules(import.meta.filename);

const clock = new FakeClock();
/** Files are read each second, and replicas asked each third. */
const lookMs = 1_000;

let api: TestApi;
let model: ScriptedModel;
const route = () => [{ pool: "p", service: model.url, weight: 100, idle: false }];
const arcana = { speaker: "luna", text: "Hello there." };

const soon = <T>(what: string, look: () => T | Promise<T>) => eventuallyOn(clock, what, look, lookMs);

beforeAll(async () => {
  model = await startScriptedModel(speakTone(0.1));
  api = await startTestApi(
    { mist: route(), arcana: route() },
    {
      limits: { bodyBytes: 10_000, headerBytes: 8000 },
    },
    { clock },
  );
  await soon("the model is reachable", async () => (await fetch(`${api.url}/health`)).ok);
});

afterAll(async () => {
  await api.stop();
  await model.close();
});

async function problem(answer: Response) {
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  const body = (await answer.json()) as Record<string, unknown>;
  expect(body).toMatchObject({
    type: `https://svc-tts.dev/errors#${body.code}`,
    status: answer.status,
    title: expect.any(String),
    detail: expect.any(String),
    requestId: answer.headers.get("x-request-id"),
  });
  return body;
}

describe("a request that is refused", () => {
  it("names every wrong field by JSON pointer, and never repeats the text", async () => {
    const answer = await api.post(
      { speaker: "abbie", text: "secret ".repeat(100), samplingRate: 3, speedAlpha: "fast" },
      { accept: "audio/pcm" },
    );
    const body = await problem(answer);
    expect((body.errors as { pointer: string }[]).map((error) => error.pointer).sort()).toEqual([
      "/samplingRate",
      "/speedAlpha",
      "/text",
    ]);
    expect(JSON.stringify(body)).not.toContain("secret");
  });

  it("gives one answer for unknown and expired keys, and says how to authenticate", async () => {
    const unknown = await api.post(arcana, { authorization: "Bearer svc_unknown" });
    const expired = await api.post(arcana, { authorization: `Bearer ${api.otherKeys.expired}` });
    const none = await api.post(arcana, { authorization: "" });
    expect(expired.status).toBe(401);
    expect(expired.headers.get("www-authenticate")).toBe('Bearer realm="svc-tts", error="invalid_token"');
    expect(none.headers.get("www-authenticate")).toBe('Bearer realm="svc-tts"');
    const [a, b] = [await problem(unknown), await problem(expired)];
    expect({ ...a, requestId: "" }).toEqual({ ...b, requestId: "" });
  });

  it("is a 403 for a key without the scope", async () => {
    const answer = await api.post(arcana, { authorization: `Bearer ${api.otherKeys.unscoped}` });
    expect(answer.status).toBe(403);
    expect(answer.headers.get("www-authenticate")).toContain('scope="tts:write"');
    expect((await problem(answer)).code).toBe("insufficient_scope");
    held.exercised("403");
  });

  it("is a 404 off the map, and a 405 with Allow for the wrong method", async () => {
    expect((await problem(await fetch(`${api.url}/nowhere`))).code).toBe("not_found");
    const wrong = await fetch(`${api.url}/v1/svc-tts`);
    expect(wrong.status).toBe(405);
    expect(wrong.headers.get("allow")).toBe("POST");
    await problem(wrong);
    const unusual = await fetch(`${api.url}/v1/voices`, { method: "QUERY" }); // Fastify asks it for a body's type
    expect(unusual.status).toBe(405);
    expect((await problem(await fetch(`${api.url}/v1/voices`, { method: "POST", body: "x" }))).code).toBe(
      "method_not_allowed",
    );
  });

  it.each([
    ["what is no HTTP", "HELLO\r\n\r\n", "400", "malformed_http"],
    [
      "headers without end",
      `GET / HTTP/1.1\r\nhost: x\r\nx: ${"y".repeat(9000)}\r\n\r\n`,
      "431",
      "headers_too_large",
    ],
  ])("for %s is a problem on the bare socket", async (_what, bytes, status, code) => {
    const { text } = await rawRequest(api.url, bytes);
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(text).toContain(`"code":"${code}"`);
  });
});

describe("GET /health", () => {
  it("has exactly the four fields of the specification, and turns 503 when no model can serve", async () => {
    const healthy = await fetch(`${api.url}/health`);
    expect(healthy.status).toBe(200);
    const body = (await healthy.json()) as Record<string, string>;
    expect(Object.keys(body).sort()).toEqual(["apiStatus", "licenseStatus", "modelReachable", "timestamp"]);
    expect(body).toMatchObject({ apiStatus: "ok", licenseStatus: "valid", modelReachable: true });
    expect(body.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

    model.ready = false;
    await soon("health turns 503", async () => (await fetch(`${api.url}/health`)).status === 503);
    expect(await (await fetch(`${api.url}/health`)).json()).toMatchObject({ modelReachable: false });
    expect((await fetch(`${api.url}/livez`)).status).toBe(200);
    expect((await fetch(`${api.url}/ready`)).status).toBe(200);
    model.ready = true;
    await soon("health recovers", async () => (await fetch(`${api.url}/health`)).ok);
  });

  it("counts a pool that is meant to be idle as reachable, and one that is gone as not", async () => {
    const gone = { pool: "gone", service: "http://127.0.0.1:9", weight: 100, idle: false };
    const reachable = async () =>
      ((await (await fetch(`${api.url}/health`)).json()) as { modelReachable: boolean }).modelReachable;
    api.route({ mist: [gone], arcana: route() });
    await soon("a model that is gone is noticed", async () => !(await reachable()));
    expect((await fetch(`${api.url}/health`)).status).toBe(200); // arcana still serves
    api.route({ mist: [{ ...gone, idle: true }], arcana: route() });
    await soon("an idle pool counts as reachable", reachable);
    api.route({ mist: route(), arcana: route() });
    await soon("the table is back", async () => (await api.post({ ...arcana, speaker: "abbie" }, {})).ok);
  });
});

describe("the license", () => {
  it("refuses synthesis once it is expired, and takes a new one without a restart", async () => {
    await api.license({ expires: clock.nowMs() - 1000, graceDays: 0 });
    await soon(
      "synthesis is refused",
      async () => (await api.post(arcana, { accept: "audio/wav" })).status === 403,
    );
    const refused = await problem(await api.post(arcana, { accept: "audio/wav" }));
    expect(refused).toMatchObject({ code: "license_required", detail: expect.stringContaining("Renew it") });
    const health = await fetch(`${api.url}/health`);
    expect(health.status).toBe(503);
    expect(await health.json()).toMatchObject({ licenseStatus: "expired", modelReachable: true });

    await api.license({ models: ["mist"] });
    await soon("the license is valid", async () => (await fetch(`${api.url}/health`)).ok);
    expect((await problem(await api.post(arcana, { accept: "audio/wav" }))).detail).toContain("not arcana");
    await api.license({});
    await soon("synthesis is back", async () => (await api.post(arcana, { accept: "audio/wav" })).ok);
  });
});

describe("the keys file", () => {
  it("is read again when it changes, and keeps its last good state when it breaks", async () => {
    const other = await startTestApi({ arcana: route() }, {}, { clock });
    const works = async () => (await other.post(arcana, { accept: "audio/wav" })).ok;
    const path = join(other.folder, "keys.yaml");
    const good = readFileSync(path, "utf8");
    const write = async (text: string) => {
      writeFileSync(path, text);
      await clock.advance(1_000);
    };
    await write("keys: [{name: broken}]");
    expect(await works()).toBe(true);
    await write("keys: []");
    expect(await works()).toBe(false);
    await write(good);
    expect(await works()).toBe(true);
    await other.stop();
  });
});

describe("the catalogue and the metrics", () => {
  it("lists voices and models", async () => {
    const voices = (await (await fetch(`${api.url}/v1/voices`)).json()) as { voices: { id: string }[] };
    expect(voices.voices.map((voice) => voice.id)).toEqual(["luna", "abbie"]);
    const list = (await (await fetch(`${api.url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(list.data.map((entry) => entry.id)).toEqual(["mist", "arcana"]);
  });

  it("counts requests by route, and errors by code, with bounded labels", async () => {
    await fetch(`${api.url}/${crypto.randomUUID()}`);
    const text = await (await fetch(`${api.url}/metrics`)).text();
    expect(text).toMatch(
      /http_requests_total\{endpoint="\/v1\/svc-tts",http_status="200",method="POST"\} \d+/,
    );
    expect(text).toMatch(
      /http_errors_total\{endpoint="other",http_status="404",method="GET",error_message="not_found"\} \d+/,
    );
    expect(text).toMatch(/svc_tts_first_audio_seconds_count\{model="arcana",variant="stream-wav"\} \d+/);
    expect(text).toMatch(/svc_tts_streams\{model="arcana"\} 0/);
    expect(text).toContain('svc_tts_license_state{state="valid"} 1');
  });
});
