/** Tests word timestamps on sockets in every language of the catalogue, with the real engines. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { languages, type Voice, voices } from "../../../../config/contract/voices.ts";
import { longTexts } from "../../../support/audio/texts.ts";
import { startWholeServer, type WholeServer } from "../../../support/server/whole-server.ts";
import { connectSocket } from "../../../support/sockets/client.ts";
import { connectV1 } from "../../../support/sockets/v1-client.ts";

let server: WholeServer;

beforeAll(async () => {
  server = await startWholeServer();
});

afterAll(() => server.stop());

const rate = 24_000;
/** The last word may end this many seconds after the audio. */
const tolerance = 0.02;

interface Times {
  readonly words: readonly string[];
  readonly start: readonly number[];
  readonly end: readonly number[];
}

function voiceOf(language: string): Voice {
  const voice = voices.find((one) => one.language === language && one.models.includes("mist"));
  if (!voice) throw new Error(`mist has no voice of the language ${language}`);
  return voice;
}

function expectInOrder({ words, start, end }: Times, seconds: number): void {
  expect(words.length).toBeGreaterThan(0);
  expect([start.length, end.length]).toEqual([words.length, words.length]);
  for (const [at, from] of start.entries()) {
    expect(end[at]).toBeGreaterThanOrEqual(from);
    expect(from).toBeGreaterThanOrEqual(start[at - 1] ?? 0);
  }
  expect(end.at(-1)).toBeLessThanOrEqual(seconds + tolerance);
}

describe.each(Object.keys(languages))("in %s (11.10)", (language) => {
  const [text = ""] = longTexts[language] ?? [];
  const speaker = voiceOf(language).id;

  it("/ws3 sends word timestamps once for each synthesis, relative to its start", async () => {
    const query = `speaker=${speaker}&modelId=mist&audioFormat=pcm&samplingRate=${rate}&segment=never`;
    const client = await connectSocket(server.api.url, `/ws3?${query}`, { key: server.api.key });
    for (const contextId of ["a", "b"]) {
      client.send({ text, contextId }, { operation: "flush", contextId });
      await client.until("done", contextId === "a" ? 1 : 2);
    }
    expect(client.sequence).toEqual(["chunk", "timestamps", "done", "chunk", "timestamps", "done"]);
    const seconds = client.audio.length / 2 / 2 / rate;
    for (const { word_timestamps: times } of client.ofType("timestamps")) {
      expectInOrder(times as Times, seconds);
      expect((times as Times).start[0]).toBeLessThan(0.5);
    }
    for (const { data } of client.ofType("chunk")) {
      expect(Buffer.from(String(data), "base64").length % 2).toBe(0);
    }
    client.socket.terminate();
  });

  it("a context of v1 has the word timestamps of all of its text", async () => {
    const client = await connectV1(server.api.url, "binary", { key: server.api.key });
    const audioParameters = { audioFormat: "audio/pcm", samplingRate: rate };
    client.send("a", { start: { speaker, audioParameters, timestamps: { enable: true } } });
    for (let i = 0; i < 2; i++) client.send("a", { text });
    client.send("a", { end: {} });
    await client.ended("a");
    const spans = client.last("done", "a")?.timestamps?.spans ?? [];
    const secondsOf = (time: { seconds: bigint; nanos: number } | undefined) =>
      Number(time?.seconds) + (time?.nanos ?? 0) / 1e9;
    const times = {
      words: spans.map((span) => span.text),
      start: spans.map(({ start }) => secondsOf(start)),
      end: spans.map(({ end }) => secondsOf(end)),
    };
    expectInOrder(times, client.audio("a").length / 2 / rate);
    const half = times.words.length / 2;
    expect(times.words.slice(half)).toEqual(times.words.slice(0, half));
    client.client.socket.terminate();
  });
});
