/** Tests Pipecat's services from PyPI with each socket that they support (specification 11.1, 11.2, 11.4). */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { speakAndWait } from "../support/sockets/scripted-speech.ts";
import { ClientTest, pieces, rate, wholeText } from "./client-test.ts";
import { exampleOf, isComplete, pipecatPackages } from "./published-clients.ts";

interface Turn {
  readonly samples: number;
  readonly words: readonly string[];
  /** The number of audio contexts in the audio of the turn. */
  readonly contexts: number;
}

let client: ClientTest;

beforeAll(async () => {
  client = await ClientTest.start(pipecatPackages, "pipecat_client.py");
});

beforeEach(() => client.reset());

afterAll(() => client.stop());

const coda = { model: "coda", voice: "lyra", language: "eng" };
const mist = { model: "mistv3", voice: "cove", language: "en" };
const v1 = (["binary", "json"] as const).flatMap((encoding) =>
  (["sentence", "token"] as const).map((aggregation) => ({
    ...{ name: `v1 in ${encoding}, by ${aggregation}`, service: "v1", path: "/v1/mist/ws" },
    ...{ settings: mist, encoding, aggregation },
  })),
);
const services = [
  { name: "ws3", service: "json", path: "/v1/ws3", settings: coda },
  { name: "ws2, mist", service: "json", path: "/ws2", settings: mist },
  { name: "ws", service: "text", path: "/v1/ws", settings: coda },
  ...v1,
];
const quick = services.filter(({ name }) => name === "ws3" || name === "v1 in binary, by token");

describe.each(isComplete ? services : quick)("Pipecat on $name", ({ path, ...service }) => {
  const turn = (more: object = {}) => {
    const { url, api } = client;
    return client.ask<Turn>({ ...service, url: url + path, key: api.key, rate, pieces, ...more });
  };

  it("plays a turn of three sentences, and the next turn on the same socket (11.1, 11.2)", async () => {
    const first = await turn();
    expect(client.spoken).toBe(wholeText);
    expect(first).toMatchObject({ contexts: 1, samples: client.samples });
    const second = await turn();
    expect(client.samples).toBe(first.samples + second.samples);
    expect(client.sockets).toBe(1);
    if (service.service === "json") {
      expect(first.words.join(" ").split(/\s+/)).toEqual(wholeText.split(" "));
    }
  });

  it("frees the engine after an interruption, and plays only the next turn (11.4)", async () => {
    client.model.script = speakAndWait;
    await turn({ interrupt: true });
    await Promise.all(client.model.calls.map(({ aborted }) => aborted));
    client.reset();
    const next = await turn();
    expect(client.spoken).toBe(wholeText);
    expect(next).toMatchObject({ contexts: 1, samples: client.samples });
  });
});

it("the documentation's example for Pipecat runs unchanged", async () => {
  const order = { example: exampleOf("pipecat", pipecatPackages), environment: client.environment };
  const { samples } = await client.ask<Turn>({ ...order, rate, pieces });
  expect(samples).toBe(client.samples);
  expect(client.spoken).toBe(wholeText);
});
