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
  const authenticate = async (request: { apiKey: unknown }) => {
    request.apiKey = { id: "id", name: "a key", scopes: [] };
  };
  app.post("/guarded", { onRequest: authenticate }, async () => ({ held: budget.heldBytes() }));
});
afterEach(() => app.close());

/** Starts a request. The test then writes the body in pieces. */
function begin(url: string, declaredBytes?: number) {
  const body = new PassThrough();
  const headers = {
    "content-type": "application/json",
    ...(declaredBytes === undefined
      ? { "transfer-encoding": "chunked" }
      : { "content-length": String(declaredBytes) }),
  };
  const response = app.inject({ method: "POST", url, headers, payload: body });
  response.catch(() => undefined); // A failed test leaves this promise without a handler.
  return { body, response };
}

function json(bytes: number): string {
  return JSON.stringify("a".repeat(bytes - 2));
}

it("a body of a client without an API key is limited to 64 KiB and reserves no memory", async () => {
  const send = (payload: string) =>
    app.inject({ method: "POST", url: "/open", headers: { "content-type": "application/json" }, payload });
  expect((await send(json(64 * kibibyte))).json()).toMatchObject({ held: 0 });
  expect((await send(json(64 * kibibyte + 1))).statusCode).toBe(413);
  const { body, response } = begin("/open");
  body.end(json(64 * kibibyte + 1));
  expect((await response).statusCode).toBe(413);
});

it("a body with Content-Length reserves memory only after its first 64 KiB", async () => {
  const { body, response } = begin("/guarded", limitBytes);
  body.write(json(limitBytes).slice(0, 64 * kibibyte));
  await eventually("the server has read the bytes", () => body.readableLength === 0);
  expect(budget.heldBytes()).toBe(0);
  body.write(json(limitBytes).slice(64 * kibibyte, 65 * kibibyte));
  await eventually("the memory of the whole body is reserved", () => budget.heldBytes() === 4 * limitBytes);
  body.end(json(limitBytes).slice(65 * kibibyte));
  expect((await response).json()).toEqual({ held: 4 * limitBytes });
});

it("a slow body keeps memory only for the bytes received, and reserves more when it continues", async () => {
  const { body, response } = begin("/guarded", limitBytes);
  body.write(json(limitBytes).slice(0, 100 * kibibyte));
  await eventually("the memory of the whole body is reserved", () => budget.heldBytes() === 4 * limitBytes);
  await clock.advance(promiseMs);
  expect(budget.heldBytes()).toBe(4 * 100 * kibibyte);
  body.write(json(limitBytes).slice(100 * kibibyte, 101 * kibibyte));
  await eventually("more memory is reserved", () => budget.heldBytes() === 4 * 202 * kibibyte);
  body.end(json(limitBytes).slice(101 * kibibyte));
  expect((await response).json()).toEqual({ held: 4 * limitBytes });
});

it("a body without Content-Length reserves memory for its real length", async () => {
  const { body, response } = begin("/guarded");
  body.end(json(300 * kibibyte));
  expect((await response).json()).toEqual({ held: 4 * 300 * kibibyte });
});
