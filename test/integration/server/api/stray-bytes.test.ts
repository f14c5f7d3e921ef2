import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../../support/eventually.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { type Call, type ScriptedModel, startScriptedModel } from "../../../support/server/scripted-model.ts";

let api: TestApi;
let model: ScriptedModel;

const speakWithoutEnd = async (call: Call) => {
  await call.head(24_000);
  await call.tone(2400, 24_000);
};

beforeAll(async () => {
  model = await startScriptedModel(speakWithoutEnd);
  api = await startTestApi(model.url);
  await eventually("a reachable model", async () => (await fetch(`${api.url}/health`)).ok);
});

afterAll(async () => {
  await api.stop();
  await model.close();
});

interface AudioClient {
  readonly socket: Socket;
  text(): string;
  /** Resolves with `end`, or with the error code of the connection. */
  readonly ended: Promise<string>;
}

const speech = JSON.stringify({ speaker: "luna", modelId: "arcana", text: "Hello." });

function head(key: string, framing: string): string {
  return (
    `POST /v1/svc-tts HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\naccept: audio/pcm\r\n` +
    `content-type: application/json\r\n${framing}\r\n\r\n`
  );
}

async function send(bytes: string): Promise<AudioClient> {
  const { hostname, port } = new URL(api.url);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  let text = "";
  socket.setEncoding("latin1").on("data", (piece: string) => (text += piece));
  const ended = new Promise<string>((resolve) => {
    socket.once("end", () => resolve("end"));
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? ""));
  });
  socket.write(bytes);
  return { socket, text: () => text, ended };
}

const sendSpeech = () => send(head(api.key, `content-length: ${speech.length}`) + speech);

async function receiveAudio(): Promise<AudioClient> {
  const client = await sendSpeech();
  await eventually("audio of the response", () => client.text().length > 2000);
  return client;
}

describe("invalid bytes during the audio of a response", () => {
  it.each([
    ["alone", "not HTTP\r\n\r\n"],
    ["after a pipelined request", "GET /livez HTTP/1.1\r\nhost: x\r\n\r\nnot HTTP\r\n\r\n"],
    [
      "in the body of a pipelined request",
      "POST /v1/svc-tts HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nnot a length\r\n",
    ],
  ])("(%s) reset the connection and add nothing to the audio", async (_where, bytes) => {
    const client = await receiveAudio();
    client.socket.write(bytes);
    expect(await client.ended).toBe("ECONNRESET");
    expect(client.text().match(/HTTP\/1\.1 /g)).toEqual(["HTTP/1.1 "]);
    expect(client.text()).not.toContain("malformed_http");
  });
});

describe("invalid bytes", () => {
  const statuses = (client: AudioClient) => client.text().match(/HTTP\/1\.1 \d+/g);

  it("cause a 400 for a request that waits for its audio, and stop the model", async () => {
    model.script = () => Promise.withResolvers<void>().promise;
    const calls = model.calls.length;
    const client = await sendSpeech();
    await eventually("the invocation", () => model.calls.length === calls + 1);
    client.socket.write("not HTTP\r\n\r\n");
    expect(await client.ended).toBe("end");
    expect(statuses(client)).toEqual(["HTTP/1.1 400"]);
    await model.calls[calls]?.aborted;
    model.script = speakWithoutEnd;
  });

  it("do not change a response that was sent before the end of the request body", async () => {
    const client = await send(head("wrong", "transfer-encoding: chunked"));
    await eventually("the rejection", () => client.text().includes('"code":"unauthorized"'));
    client.socket.write("not a length\r\n");
    expect(await client.ended).toBe("end");
    expect(statuses(client)).toEqual(["HTTP/1.1 401"]);
  });

  it("cause a 400 after a complete response", async () => {
    const client = await send("GET /livez HTTP/1.1\r\nhost: x\r\n\r\n");
    await eventually("the response", () => client.text().includes("\r\n\r\n"));
    client.socket.write("not HTTP\r\n\r\n");
    expect(await client.ended).toBe("end");
    expect(statuses(client)).toEqual(["HTTP/1.1 200", "HTTP/1.1 400"]);
  });
});
