import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";

const script = join(import.meta.dirname, "../../../charts/tts-operator/files/speak.mjs");

/** The responses of the simulated server. */
interface Scene {
  readonly ready?: number;
  readonly status?: number;
  readonly answer?: string;
}

/**
 * Runs the script of `helm test` as its pod does, with a server that simulates both the operator and a
 * TtsDeployment.
 */
async function run(scene: Scene, environment: (url: string) => Record<string, string>) {
  const requests: { headers: IncomingMessage["headers"]; body: string }[] = [];
  await using server = createServer(async (request, response) => {
    if (request.url === "/readyz") return response.writeHead(scene.ready ?? 200).end("ok");
    requests.push({ headers: request.headers, body: await text(request) });
    return response.writeHead(scene.status ?? 200).end(scene.answer);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", await readFile(script, "utf8")], {
    env: { OPERATOR_URL: url, ...environment(url) },
  });
  const [out, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "exit"),
  ]);
  server.closeAllConnections();
  return { code, output: out + errors, requests };
}

/** Returns the JSON response with the WAV file of a tone: 16-bit mono at 22050 Hz. */
function tone(seconds: number, loudness: number): string {
  const rate = 22_050;
  const samples = Math.round(seconds * rate);
  const wav = Buffer.alloc(44 + samples * 2);
  wav.write("RIFF", 0);
  wav.writeUInt32LE(36 + samples * 2, 4);
  wav.write("WAVEfmt ", 8);
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(rate, 24);
  wav.writeUInt32LE(rate * 2, 28);
  wav.writeUInt16LE(2, 32);
  wav.writeUInt16LE(16, 34);
  wav.write("data", 36);
  wav.writeUInt32LE(samples * 2, 40);
  for (let i = 0; i < samples; i++) {
    wav.writeInt16LE(Math.round(loudness * Math.sin((2 * Math.PI * 220 * i) / rate)), 44 + i * 2);
  }
  return JSON.stringify({ audioContent: wav.toString("base64") });
}

const speaking = (url: string) => ({
  SPEAK_URL: url,
  SPEAK_API_KEY: "svc_secret\n",
  SPEAK_REQUEST: JSON.stringify({ modelId: "mist", speaker: "alan", text: "It works." }),
});

describe("helm test", () => {
  it("succeeds if a request with the API key returns speech", async () => {
    const { code, output, requests } = await run({ answer: tone(1.5, 8000) }, speaking);
    expect(code).toBe(0);
    expect(output).toContain("returned 1.50 s of audio at 22050 Hz");
    expect(output).not.toContain("svc_secret");
    expect(requests[0]?.headers).toMatchObject({
      authorization: "Bearer svc_secret",
      accept: "application/json",
    });
    expect(JSON.parse(requests[0]?.body ?? "")).toEqual({
      modelId: "mist",
      speaker: "alan",
      text: "It works.",
      audioFormat: "wav",
    });
  });

  it("checks only the operator if no endpoint is set, and prints this", async () => {
    const { code, output } = await run({}, () => ({}));
    expect(code).toBe(0);
    expect(output).toContain("no speech was requested: to include speech, set test.apiKeySecret");
  });

  it.each([
    ["the operator is not ready", { ready: 503 }, "/readyz returned 503"],
    ["the request is refused", { status: 401, answer: '{"code":"unauthorized"}' }, "unauthorized"],
    ["the audio is silent", { answer: tone(1.5, 0) }, "silent"],
    ["the audio is too short", { answer: tone(0.1, 8000) }, "too short"],
    ["the bytes are not audio", { answer: '{"audioContent":"aGVsbG8="}' }, "not a RIFF WAVE"],
    ["the response has no audio", { answer: "{}" }, "not a RIFF WAVE"],
  ])("fails and prints the cause if %s", async (_what, scene, cause) => {
    const { code, output } = await run(scene, speaking);
    expect(code).toBe(1);
    expect(output).toContain("FAILED");
    expect(output).toContain(cause);
  });

  it("fails if the server is not reachable", async () => {
    const { code, output } = await run({}, () => ({ SPEAK_URL: "http://127.0.0.1:9", SPEAK_REQUEST: "{}" }));
    expect(code).toBe(1);
    expect(output).toContain("http://127.0.0.1:9/v1/svc-tts was not reachable");
  });
});
