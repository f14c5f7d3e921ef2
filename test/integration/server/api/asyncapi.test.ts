/** Compares real messages of all sockets with docs/asyncapi.json. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import Schema from "typebox/schema";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../../support/eventually.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { type ScriptedModel, startScriptedModel } from "../../../support/server/scripted-model.ts";
import { connectSocket, type SocketClient } from "../../../support/sockets/client.ts";
import { speakAndWait, speakWords } from "../../../support/sockets/scripted-speech.ts";

interface Message {
  readonly payload: object;
}
interface Document {
  readonly channels: Record<string, { readonly messages: Record<string, Message> }>;
  readonly operations: Record<string, { readonly messages: readonly { readonly $ref: string }[] }>;
  readonly components: { readonly schemas: Record<string, object> };
}

const document = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../../../docs/asyncapi.json"), "utf8"),
) as Document;

/** Returns the value with every reference replaced by its target. */
function resolved(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(resolved);
  if (typeof value !== "object" || value === null) return value;
  const reference = (value as { readonly $ref?: string }).$ref;
  if (reference !== undefined) return resolved(lookUp(reference));
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, resolved(inner)]));
}

function lookUp(reference: string): unknown {
  const steps = reference.replace("#/", "").split("/");
  const target = steps.reduce<unknown>((from, step) => (from as Record<string, unknown>)?.[step], document);
  if (target === undefined) throw new Error(`docs/asyncapi.json has no ${reference}`);
  return target;
}

/** Returns the names of the operation's messages that have a schema for the value. */
function matchingMessages(operation: string, value: unknown): string[] {
  const references = document.operations[operation]?.messages ?? [];
  return references
    .filter(({ $ref }) => Schema.Check(resolved((lookUp($ref) as Message).payload) as object, value))
    .map(({ $ref }) => $ref.split("/").at(-1) ?? "");
}

let api: TestApi;
let model: ScriptedModel;

beforeAll(async () => {
  model = await startScriptedModel(speakWords);
  api = await startTestApi(model.url);
});

beforeEach(() => {
  model.script = speakWords;
});

afterAll(async () => {
  await api.stop();
  await model.close();
});

const connect = (path: string, subprotocol?: string) =>
  connectSocket(api.url, path, { key: api.key, subprotocol });

/** Sends messages, and checks that the document has exactly one schema for each. */
function send(client: SocketClient, operation: string, ...messages: readonly object[]): void {
  for (const message of messages) {
    const matches = matchingMessages(operation, message).length;
    expect({ message, matches }).toEqual({ message, matches: 1 });
    client.send(message);
  }
}

/**
 * Checks that the document has exactly one schema for each received message.
 * @returns the names of the received messages
 */
function namesOf({ events }: SocketClient, operation: string): ReadonlySet<string> {
  const names = events.map((event) => matchingMessages(operation, event));
  for (const [at, matches] of names.entries()) {
    expect({ event: events[at], matches }).toEqual({ event: events[at], matches: [expect.any(String)] });
  }
  return new Set(names.flat());
}

describe("docs/asyncapi.json", () => {
  it.each([
    ["json", "/ws3"],
    ["jsonWithFlag", "/ws2"],
  ])("describes every message of the channel %s", async (channel, path) => {
    const client = await connect(`${path}?speaker=abbie&audioFormat=pcm`);
    const requests = `${channel}.receive`;
    send(client, requests, { text: "Hello there. ", contextId: "a" }, { operation: "flush" });
    await client.until("done");
    model.script = speakAndWait;
    send(client, requests, { text: "More. ", contextId: null, inlineSpeedAlpha: "0.5" });
    await client.until("chunk", 2);
    send(client, requests, { operation: "clear" });
    await client.until("done", 2);
    client.send("{", { text: 1 });
    await client.until("error", 2);
    send(client, requests, { operation: "eos" });
    await client.closed();
    expect(namesOf(client, `${channel}.send`)).toEqual(
      new Set(["server.chunk", "server.timestamps", "server.done", "server.error"]),
    );
  });

  it("describes every message of the channel contexts", async () => {
    const client = await connect("/ws", "rime.v1.json");
    const requests = "contexts.receive";
    const audioParameters = { audioFormat: "audio/pcm", samplingRate: 8000, timeScaleFactor: 1.5 };
    send(client, requests, { config: { defaults: { speaker: "abbie", audioParameters } } });
    const start = {
      ...{ timestamps: { enable: true }, splitStrategy: "SPLIT_STRATEGY_ACCUMULATE_SENTENCE" },
      ...{ mistParameters: { inlineTimeScaleFactors: [0.5], saveOovs: true } },
      customLexicon: [{ spelling: "cache", pronunciation: '" k { S' }],
    };
    send(client, requests, { contextId: "a", start }, { contextId: "a", text: "One." });
    send(client, requests, { contextId: "a", end: {} }, { contextId: "b", cancel: {} });
    send(client, requests, { contextId: "c", start: { speaker: "unknown-voice", text: "One." } });
    await eventuallyHas(client, "done");
    await eventuallyHas(client, "cancelled");
    await eventuallyHas(client, "error");
    expect(namesOf(client, "contexts.send")).toEqual(
      new Set(["ready", "started", "audio", "done", "cancelled", "error"].map((name) => `server.${name}`)),
    );
    client.socket.terminate();
  });

  it("has no schema for messages that the sockets neither accept nor send", () => {
    for (const wrong of [{ text: 1 }, { operation: "stop" }, {}])
      expect(matchingMessages("json.receive", wrong)).toEqual([]);
    for (const wrong of [{ type: "other" }, { type: "done" }, { type: "done", contextId: null, more: 1 }])
      expect(matchingMessages("json.send", wrong)).toEqual([]);
    expect(matchingMessages("jsonWithFlag.send", { type: "done", contextId: null })).toEqual([]);
    for (const wrong of [{ start: { speaker: 1 } }, { start: { splitStrategy: "x" } }, { contextId: "a" }])
      expect(matchingMessages("contexts.receive", wrong)).toEqual([]);
    expect(matchingMessages("contexts.send", { contextId: "a", audio: "", done: {} })).toEqual([]);
  });
});

function eventuallyHas(client: SocketClient, payload: string): Promise<unknown> {
  return eventually(`a message ${payload}`, () => client.events.some((event) => payload in event), {
    seen: () => client.events,
  });
}
