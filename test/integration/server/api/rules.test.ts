import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RoutingTable } from "../../../../config/contract/routing.ts";
import type { ApiSettings } from "../../../../server/start/api-settings.ts";
import { eventuallyOn, FakeClock } from "../../../support/fake-clock.ts";
import {
  rawRequest,
  routeTo,
  sampleOf,
  startTestApi,
  type TestApi,
} from "../../../support/server/api-tier.ts";
import { type ScriptedModel, speakTone, startScriptedModel } from "../../../support/server/scripted-model.ts";
import { heldRules } from "../../contract/held-rules.ts";

const held = heldRules(import.meta.filename);

const clock = new FakeClock();
/** The server reads files once a second, and probes replicas three times a second. */
const readMs = 1_000;

let api: TestApi;
let model: ScriptedModel;
const route = () => routeTo(model.url);
const arcana = { speaker: "luna", text: "Hello there." };

const soon = <T>(what: string, condition: () => T | Promise<T>) =>
  eventuallyOn(clock, what, condition, readMs);

beforeAll(async () => {
  model = await startScriptedModel(speakTone(0.1));
  api = await startTestApi({ mist: route(), arcana: route() }, { limits: { headerBytes: 8000 } }, { clock });
  await soon("a reachable model", async () => (await fetch(`${api.url}/health`)).ok);
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

describe("a rejected request", () => {
  it("gets 401 without a key and 403 without the scope, with WWW-Authenticate", async () => {
    const none = await api.post(arcana, { authorization: "" });
    expect(none.headers.get("www-authenticate")).toBe('Bearer realm="svc-tts"');
    const answer = await api.post(arcana, { authorization: `Bearer ${api.otherKeys.unscoped}` });
    expect(answer.status).toBe(403);
    expect(answer.headers.get("www-authenticate")).toContain('scope="tts:write"');
    expect((await problem(answer)).code).toBe("insufficient_scope");
    held.exercised("403");
  });

  it("gets 405 for a method that is not allowed, also with an invalid body", async () => {
    const wrong = await fetch(`${api.url}/v1/voices`, { method: "POST", body: "x" });
    expect((await problem(wrong)).code).toBe("method_not_allowed");
  });

  it("gets a problem document with 431 if its headers exceed the limit", async () => {
    const { text } = await rawRequest(api.url, `GET / HTTP/1.1\r\nhost: x\r\nx: ${"y".repeat(9000)}\r\n\r\n`);
    expect(text).toMatch(/^HTTP\/1.1 431 .*"code":"headers_too_large"/s);
  });
});

describe("GET /health", () => {
  it("responds with 503 when no model can serve", async () => {
    model.ready = false;
    await soon("/health to return 503", async () => (await fetch(`${api.url}/health`)).status === 503);
    expect(await (await fetch(`${api.url}/health`)).json()).toMatchObject({ modelReachable: false });
    expect((await fetch(`${api.url}/livez`)).status).toBe(200);
    expect((await fetch(`${api.url}/ready`)).status).toBe(200);
    model.ready = true;
    await soon("/health to return 200", async () => (await fetch(`${api.url}/health`)).ok);
  });

  it("counts a pool that is scaled to zero as reachable, and a pool with a missing replica as unreachable", async () => {
    const missingReplica = { pool: "gone", service: "http://127.0.0.1:9", weight: 100, idle: false };
    const health = async () => (await fetch(`${api.url}/health`)).json();
    const reachable = async () => ((await health()) as { modelReachable: boolean }).modelReachable;
    api.route({ mist: [missingReplica], arcana: route() });
    await soon("an unreachable model", async () => !(await reachable()));
    expect((await fetch(`${api.url}/health`)).status).toBe(200); // arcana still serves.
    api.route({ mist: [{ ...missingReplica, idle: true }], arcana: route() });
    await soon("a reachable idle pool", reachable);
    api.route({ mist: route(), arcana: route() });
    await soon("the restored table", async () => (await api.post({ ...arcana, speaker: "abbie" }, {})).ok);
  });
});

describe("the license", () => {
  it("is enforced: requests are rejected after it expired, and a new license needs no restart", async () => {
    await api.license({ expires: clock.nowMs() - 1000, graceDays: 0 });
    const status = async () => (await api.post(arcana, { accept: "audio/wav" })).status;
    await soon("a rejected request", async () => (await status()) === 403);
    const rejection = await problem(await api.post(arcana, { accept: "audio/wav" }));
    expect(rejection).toMatchObject({
      code: "license_required",
      detail: expect.stringContaining("Renew it"),
    });
    const health = await fetch(`${api.url}/health`);
    expect(health.status).toBe(503);
    expect(await health.json()).toMatchObject({ licenseStatus: "expired", modelReachable: true });

    await api.license({ models: ["mist"] });
    await soon("a valid license", async () => (await fetch(`${api.url}/health`)).ok);
    expect(await sampleOf(api.url, 'svc_tts_license_state{state="valid"}')).toBe(1);
    expect((await problem(await api.post(arcana, { accept: "audio/wav" }))).detail).toContain(
      "The license does not cover arcana",
    );
    await api.license({});
    await soon("a successful request", async () => (await api.post(arcana, { accept: "audio/wav" })).ok);
  });
});

/** Starts an API tier with its own clock, so that a test can change its license. */
async function startLicensed(settings: Partial<ApiSettings> = {}) {
  const ownClock = new FakeClock();
  const models = { mist: route(), arcana: route() };
  const other = await startTestApi(models, settings, { clock: ownClock });
  const health = async () => (await fetch(`${other.url}/health`)).json() as Promise<Record<string, unknown>>;
  return {
    ...other,
    clock: ownClock,
    health,
    trust: (set: object) => writeFileSync(join(other.folder, "jwks.json"), JSON.stringify(set)),
    route: (more: Partial<RoutingTable>) => other.route(models, more),
    until: (licenseStatus: string) =>
      eventuallyOn(
        ownClock,
        `license status ${licenseStatus}`,
        async () => (await health()).licenseStatus === licenseStatus,
        readMs,
      ),
    speak: async () => (await other.post(arcana, { accept: "audio/wav" })).status,
    remove: () => rmSync(join(other.folder, "license")),
  };
}

describe("a server that requires no license", () => {
  it("serves every model, and /health reports not_required", async () => {
    const other = await startLicensed();
    other.remove();
    other.trust({ keys: [] });
    other.route({ licenseRequired: false });
    await other.until("not_required");
    await eventuallyOn(
      other.clock,
      "a reachable model",
      async () => (await other.health()).modelReachable,
      readMs,
    );
    expect(await other.health()).toMatchObject({ apiStatus: "ok", licenseStatus: "not_required" });
    expect(await other.speak()).toBe(200);
    expect(await sampleOf(other.url, 'svc_tts_license_state{state="not_required"}')).toBe(1);
    expect(await sampleOf(other.url, 'svc_tts_license_state{state="valid"}')).toBe(0);
    await other.stop();
    held.exercised("not_required");
  });

  it("needs licenseRequired: false in the routing table and an empty list of trusted keys", async () => {
    const other = await startLicensed();
    const trusted = JSON.parse(readFileSync(join(other.folder, "jwks.json"), "utf8"));
    other.route({ licenseRequired: false });
    await other.clock.advance(3 * readMs);
    other.remove();
    await other.until("missing");
    expect(await other.speak()).toBe(403);
    other.trust({ keys: [] });
    await other.until("not_required");
    expect(await other.speak()).toBe(200);
    other.route({});
    await other.until("missing");
    other.route({ licenseRequired: false });
    await other.until("not_required");
    other.trust(trusted);
    await other.until("missing");
    expect(await other.speak()).toBe(403);
    await other.stop();
  });

  it("starts the grace period when a license becomes required, and rejects requests at its end", async () => {
    const other = await startLicensed({ licenseGraceSeconds: 600 });
    other.remove();
    other.trust({ keys: [] });
    other.route({ licenseRequired: false });
    await other.until("not_required");
    other.route({});
    await other.until("grace");
    expect(await other.speak()).toBe(200);
    await other.clock.advance(600_000);
    await other.until("missing");
    expect(await other.speak()).toBe(403);
    await other.stop();
  });
});

describe("a license whose file is deleted", () => {
  it("does not start another grace period after the first one", async () => {
    const other = await startLicensed({ licenseGraceSeconds: 600 });
    await other.license({ expires: other.clock.nowMs() - 700_000 });
    await other.until("expired");
    other.remove();
    const deletedAt = other.clock.nowMs();
    await other.until("missing");
    expect(other.clock.nowMs() - deletedAt).toBeLessThan(300_000);
    await other.stop();
  });

  it("does not extend a grace period that has begun", async () => {
    const other = await startLicensed({ licenseGraceSeconds: 600 });
    await other.license({ expires: other.clock.nowMs() - 300_000 });
    await other.until("grace");
    other.remove();
    const deletedAt = other.clock.nowMs();
    await other.clock.advance(300_000);
    await other.until("missing");
    expect(other.clock.nowMs() - deletedAt).toBeLessThan(500_000);
    await other.stop();
  });
});

describe("the keys file", () => {
  it("is read again when it changes, and keeps its last valid state when it becomes invalid", async () => {
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

it("GET /v1/models lists exactly the models of the routing table", async () => {
  const list = (await (await fetch(`${api.url}/v1/models`)).json()) as { data: { id: string }[] };
  expect(list.data.map((entry) => entry.id)).toEqual(["mist", "arcana"]);
});
