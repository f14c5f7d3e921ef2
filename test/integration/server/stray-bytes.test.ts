import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestApi, type TestApi } from "../../support/api-tier.ts";
import { eventually } from "../../support/eventually.ts";
import { type ScriptedModel, startScriptedModel } from "../../support/scripted-model.ts";

let api: TestApi;
let model: ScriptedModel;

beforeAll(async () => {
  // begins to speak and never ends
  model = await startScriptedModel(async (call) => {
    await call.head(24_000);
    await call.tone(2400, 24_000);
  });
  const route = [{ pool: "p", service: model.url, weight: 100, idle: false }];
  api = await startTestApi({ mist: route, arcana: route });
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

async function listenToAudio(): Promise<Listener> {
  const { hostname, port } = new URL(api.url);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  let text = "";
  socket.setEncoding("latin1").on("data", (piece: string) => (text += piece));
  const ended = new Promise<string>((resolve) => {
    socket.once("end", () => resolve("end"));
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? ""));
  });
  const body = JSON.stringify({ speaker: "luna", modelId: "arcana", text: "Hello." });
  socket.write(
    `POST /v1/svc-tts HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${api.key}\r\naccept: audio/pcm\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await eventually("audio arrives", () => text.length > 2000, { seen: () => text.slice(0, 500) });
  return { socket, text: () => text, ended };
}

describe("bytes that are not HTTP, behind a request whose audio is on its way", () => {
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
