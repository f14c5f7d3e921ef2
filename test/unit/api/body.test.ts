import { PassThrough } from "node:stream";
import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, beforeEach, expect, it } from "vitest";
import { takeJsonOnly } from "../../../server/api/request/body.ts";
import { createMemoryBudget, type MemoryBudget } from "../../../server/api/request/memory-budget.ts";
import { toFailure } from "../../../server/api/respond/problems.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const kibibyte = 1024;
const limitBytes = 1024 * kibibyte;
const promiseMs = 1000;

let budget: MemoryBudget;
let clock: FakeClock;
let app: FastifyInstance;

beforeEach(() => {
  budget = createMemoryBudget(8 * limitBytes, 600_000);
  clock = new FakeClock();
  app = Fastify();
  app.decorateRequest("apiKey", undefined);
  takeJsonOnly(app, { limitBytes, clock, promiseMs, budget });
  app.setErrorHandler((error, _request, reply) => reply.code(toFailure(error).status).send());
  app.post("/open", async (request) => ({ held: budget.heldBytes(), body: request.body }));
  const known = async (request: { apiKey: unknown }) => {
    request.apiKey = { id: "id", name: "a key", scopes: [] };
  };
  app.post("/guarded", { onRequest: known }, async () => ({ held: budget.heldBytes() }));
});
afterEach(() => app.close());

/** A request whose body the test sends in pieces. */
function begin(url: string, declaredBytes?: number) {
  const body = new PassThrough();
  const headers = {
    "content-type": "application/json",
    ...(declaredBytes === undefined
      ? { "transfer-encoding": "chunked" }
      : { "content-length": String(declaredBytes) }),
  };
  const answer = app.inject({ method: "POST", url, headers, payload: body });
  answer.catch(() => undefined); // a failed test does not remove it
  return { body, answer };
}

function json(bytes: number): string {
  return JSON.stringify("a".repeat(bytes - 2));
}

it("of an unknown client is 64 KiB at most, announced or not, and holds no memory", async () => {
  const send = (payload: string) =>
    app.inject({ method: "POST", url: "/open", headers: { "content-type": "application/json" }, payload });
  expect((await send(json(64 * kibibyte))).json()).toMatchObject({ held: 0 });
  expect((await send(json(64 * kibibyte + 1))).statusCode).toBe(413);
  const { body, answer } = begin("/open");
  body.end(json(64 * kibibyte + 1));
  expect((await answer).statusCode).toBe(413);
});

it("with an announced length reserves nothing until more than a small body has arrived", async () => {
  const { body, answer } = begin("/guarded", limitBytes);
  body.write(json(limitBytes).slice(0, 64 * kibibyte));
  await eventually("the bytes are read", () => body.readableLength === 0);
  expect(budget.heldBytes()).toBe(0);
  body.write(json(limitBytes).slice(64 * kibibyte, 65 * kibibyte));
  await eventually("the whole body has its room", () => budget.heldBytes() === 4 * limitBytes);
  body.end(json(limitBytes).slice(65 * kibibyte));
  expect((await answer).json()).toEqual({ held: 4 * limitBytes });
});

it("that does not arrive in time holds what has arrived, and more as it continues", async () => {
  const { body, answer } = begin("/guarded", limitBytes);
  body.write(json(limitBytes).slice(0, 100 * kibibyte));
  await eventually("the whole body has its room", () => budget.heldBytes() === 4 * limitBytes);
  await clock.advance(promiseMs);
  expect(budget.heldBytes()).toBe(4 * 100 * kibibyte);
  body.write(json(limitBytes).slice(100 * kibibyte, 101 * kibibyte));
  await eventually("there is room for more", () => budget.heldBytes() === 4 * 202 * kibibyte);
  body.end(json(limitBytes).slice(101 * kibibyte));
  expect((await answer).json()).toEqual({ held: 4 * limitBytes });
});

it("of unknown length holds the memory of its real length", async () => {
  const { body, answer } = begin("/guarded");
  body.end(json(300 * kibibyte));
  expect((await answer).json()).toEqual({ held: 4 * 300 * kibibyte });
});
