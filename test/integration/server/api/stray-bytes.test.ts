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
  await eventually("the model is reachable", async () => (await fetch(`${api.url}/health`)).ok);
});

afterAll(async () => {
  await api.stop();
  await model.close();
});

interface Listener {
  readonly socket: Socket;
  text(): string;
  /** How the connection ended: `end`, or the code of its error. */
  readonly ended: Promise<string>;
}

const speech = JSON.stringify({ speaker: "luna", modelId: "arcana", text: "Hello." });

function head(key: string, framing: string): string {
  return (
    `POST /v1/svc-tts HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\naccept: audio/pcm\r\n` +
    `content-type: application/json\r\n${framing}\r\n\r\n`
  );
}

async function send(bytes: string): Promise<Listener> {
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

async function listenToAudio(): Promise<Listener> {
  const listener = await sendSpeech();
  await eventually("audio arrives", () => listener.text().length > 2000);
  return listener;
}

describe("bytes that are not HTTP, during the audio of a response,", () => {
  it.each([
    ["alone", "not HTTP\r\n\r\n"],
    ["behind a pipelined request", "GET /livez HTTP/1.1\r\nhost: x\r\n\r\nnot HTTP\r\n\r\n"],
    [
      "in a pipelined request's body",
      "POST /v1/svc-tts HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nnot a length\r\n",
    ],
  ])("%s reset the connection and add nothing to the audio", async (_where, bytes) => {
    const listener = await listenToAudio();
    listener.socket.write(bytes);
    expect(await listener.ended).toBe("ECONNRESET");
    expect(listener.text().match(/HTTP\/1\.1 /g)).toEqual(["HTTP/1.1 "]);
    expect(listener.text()).not.toContain("malformed_http");
  });
});

describe("bytes that are not HTTP", () => {
  const statuses = (listener: Listener) => listener.text().match(/HTTP\/1\.1 \d+/g);

  it("end a request that waits for its audio, and stop the model", async () => {
    model.script = () => Promise.withResolvers<void>().promise;
    const calls = model.calls.length;
    const listener = await sendSpeech();
    await eventually("the model is asked", () => model.calls.length === calls + 1);
    listener.socket.write("not HTTP\r\n\r\n");
    expect(await listener.ended).toBe("end");
    expect(statuses(listener)).toEqual(["HTTP/1.1 400"]);
    await model.calls[calls]?.aborted;
    model.script = speakWithoutEnd;
  });

  it("do not change a response that was sent before the whole request body arrived", async () => {
    const listener = await send(head("wrong", "transfer-encoding: chunked"));
    await eventually("it is refused", () => listener.text().includes('"code":"unauthorized"'));
    listener.socket.write("not a length\r\n");
    expect(await listener.ended).toBe("end");
    expect(statuses(listener)).toEqual(["HTTP/1.1 401"]);
  });

  it("get a 400 response after a complete response", async () => {
    const listener = await send("GET /livez HTTP/1.1\r\nhost: x\r\n\r\n");
    await eventually("it is answered", () => listener.text().includes("\r\n\r\n"));
    listener.socket.write("not HTTP\r\n\r\n");
    expect(await listener.ended).toBe("end");
    expect(statuses(listener)).toEqual(["HTTP/1.1 200", "HTTP/1.1 400"]);
  });
});
