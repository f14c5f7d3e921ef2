/** Tests LiveKit's plugin from PyPI with each socket that it supports (specification 11.1 to 11.4). */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { speakAndWait } from "../support/sockets/scripted-speech.ts";
import { ClientTest, pieces, rate, sentences, wholeText } from "./client-test.ts";
import { exampleOf, isComplete, livekitPackages } from "./published-clients.ts";

interface Turn {
  readonly samples: number;
  readonly rate: number;
  readonly words: readonly (readonly [word: string, start: number, end: number])[];
}

let client: ClientTest;

beforeAll(async () => {
  client = await ClientTest.start(livekitPackages, "livekit_client.py");
});

beforeEach(() => client.reset());

afterAll(() => client.stop());

interface Service {
  readonly name: string;
  /** Returns the options of the plugin without the API key. */
  readonly options: () => object;
}

const base: Service = {
  name: "ws3, at its base address",
  options: () => ({ base_url: `${client.url}/v1` }),
};
const services: readonly Service[] = [
  base,
  {
    name: "ws3, mist",
    options: () => ({ base_url: client.url, model: "mistv3", speaker: "cove" }),
  },
  {
    name: "v1 in protobuf",
    options: () => ({ websocket_url: `${client.url}/coda/ws`, model: "coda" }),
  },
  {
    name: "v1 in JSON, mist",
    options: () => ({
      ...{ websocket_url: `${client.url}/v1/mist/ws`, model: "mistv3", websocket_protocol: "json" },
    }),
  },
];
const quick = services.filter(({ name }) => !name.endsWith("mist"));

const turn = ({ options }: Service, more: object = {}) =>
  client.ask<Turn>({ options: { ...options(), api_key: client.api.key }, pieces, ...more });

describe.each(isComplete ? services : quick)("LiveKit on $name", (service) => {
  it("plays a turn of three sentences, and the next turn on the same socket (11.1, 11.2)", async () => {
    const first = await turn(service);
    expect(client.spoken).toBe(wholeText);
    expect(first).toMatchObject({ rate, samples: client.samples });
    const second = await turn(service);
    expect(client.samples).toBe(first.samples + second.samples);
    expect(client.sockets).toBe(1);
    const words = service.name.startsWith("ws3") ? wholeText.split(" ") : [];
    expect(first.words.map(([word]) => word)).toEqual(words);
  });
});

describe.each(isComplete ? services : [])("LiveKit on $name", (service) => {
  it("plays the whole turn if the language model pauses for three seconds (11.3)", async () => {
    const [one, two, three] = sentences;
    const { samples } = await turn(service, { pieces: [`${one} `, 3, `${two} `, 3, three] });
    expect(client.spoken).toBe(wholeText);
    expect(samples).toBe(client.samples);
  });

  it("frees the engine after an interruption, and plays only the next turn (11.4)", async () => {
    client.model.script = speakAndWait;
    await turn(service, { interrupt: true });
    const interrupted = [...client.model.calls];
    client.reset();
    const next = await turn(service);
    expect(client.spoken).toBe(wholeText);
    expect(next.samples).toBe(client.samples);
    // On ws3, the plugin closes the socket of the interrupted turn only when it opens the next socket.
    await Promise.all(interrupted.map(({ aborted }) => aborted));
  });
});

it("the documentation's example for LiveKit runs unchanged", async () => {
  const example = exampleOf("livekit", livekitPackages);
  const { samples } = await client.ask<Turn>({ example, environment: client.environment, pieces });
  expect(samples).toBe(client.samples);
  expect(client.spoken).toBe(wholeText);
});

it("LiveKit reports an invalid API key", async () => {
  const options = { ...base.options(), api_key: "svc_wrong" };
  await expect(client.ask({ options, pieces })).rejects.toThrow("401");
  expect(client.model.calls.length).toBe(0);
});
