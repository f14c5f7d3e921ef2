import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import OpenAI, { AuthenticationError, BadRequestError } from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { decodeAudio } from "../../support/audio/audio.ts";
import { pythonWith } from "../../support/python.ts";
import { startWholeServer, type WholeServer } from "../../support/server/whole-server.ts";
import { heldRules } from "./held-rules.ts";
import type { RuleId } from "./rules.ts";

const rules: readonly RuleId[] = ["OpenAI's clients", "the OpenAI-compatible API"];

const held = heldRules(import.meta.filename);

let server: WholeServer;
beforeAll(async () => {
  server = await startWholeServer();
});
afterAll(() => server.stop());

describe(`OpenAI's client for JavaScript, with another base URL (${rules.join(", ")})`, () => {
  const clientWith = (apiKey: string) =>
    new OpenAI({ baseURL: `${server.api.url}/v1`, apiKey, maxRetries: 0 });
  const request = { model: "tts-1", voice: "nova", input: "Good day." } as const;

  it.each(["mp3", "opus", "wav"] as const)("receives a complete file as %s", async (response_format) => {
    const answer = await clientWith(server.api.key).audio.speech.create({ ...request, response_format });
    const { samples, rate } = await decodeAudio(Buffer.from(await answer.arrayBuffer()));
    expect(samples.length / rate).toBeGreaterThan(0.1);
    held.exercised(...rules);
  });

  it("receives raw PCM as a stream", async () => {
    const answer = await clientWith(server.api.key).audio.speech.create({
      ...request,
      input: "This is said piece by piece. ".repeat(10),
      response_format: "pcm",
    });
    let pieces = 0;
    let bytes = 0;
    for await (const piece of answer.body ?? []) {
      pieces += 1;
      bytes += piece.length;
    }
    expect(pieces).toBeGreaterThan(3);
    expect(bytes / 2 / 24_000).toBeGreaterThan(5);
  });

  it("raises its own error classes with the server's messages", async () => {
    const wrong = await clientWith(server.api.key)
      .audio.speech.create({ ...request, response_format: "aac" })
      .catch((error: unknown) => error);
    expect(wrong).toBeInstanceOf(BadRequestError);
    expect(wrong).toMatchObject({ status: 400, param: "response_format", code: "invalid_request" });
    expect((wrong as Error).message).toContain("mp3, opus, wav, pcm");
    const unauthorized = await clientWith("sk-unknown")
      .audio.speech.create(request)
      .catch((error: unknown) => error);
    expect(unauthorized).toBeInstanceOf(AuthenticationError);
  });

  it("lists the server's models", async () => {
    const models = await clientWith(server.api.key).models.list();
    expect(models.data.map(({ id }) => id)).toEqual(["mist", "mistv2", "arcana"]);
  });
});

describe("OpenAI's client for Python, with another base URL", () => {
  it("receives a file, a stream, events, errors and models", async () => {
    const python = await pythonWith(["openai==3.52.0"]);
    const program = fileURLToPath(new URL("../../support/openai_client.py", import.meta.url));
    const { stdout } = await promisify(execFile)(python, [program, `${server.api.url}/v1`, server.api.key]);
    const result = JSON.parse(stdout) as { wav: number; pcm: number; events: string[] };
    expect(result).toMatchObject({
      riff: "RIFF",
      refused: { param: "voice", code: "invalid_request", message: expect.stringContaining("no-such-voice") },
      models: ["mist", "mistv2", "arcana"],
    });
    expect(result.wav).toBeGreaterThan(20_000);
    expect(result.pcm).toBeGreaterThan(10_000);
    expect(result.pcm).toBeLessThan(result.wav * 0.8);
    expect(new Set(result.events.slice(0, -1))).toEqual(new Set(["speech.audio.delta"]));
    expect(result.events.at(-1)).toBe("speech.audio.done");
  });
});
