import { describe, expect, it } from "vitest";
import type { Encoder } from "../../../server/audio/encoder.ts";
import { createMp3Encoder } from "../../../server/audio/mp3.ts";
import { createOggContainer } from "../../../server/audio/ogg-opus.ts";
import { createOpusEncoder } from "../../../server/audio/opus.ts";
import { createAudioMeter } from "../../../server/bench/audio-meter.ts";
import { audioOfEvents, FailedEvent } from "../../../server/bench/events.ts";

function encoded(encoder: Encoder, samples: number): Buffer {
  const tone = Int16Array.from({ length: samples }, (_, i) => 8000 * Math.sin(i / 10));
  return Buffer.concat([encoder.encode(tone), encoder.finish()]);
}

function measureFile(type: string, file: Buffer, pieceBytes: number) {
  const meter = createAudioMeter(type, undefined);
  let [bytes, ms] = [0, 0];
  for (let at = 0; at < file.length; at += pieceBytes) {
    const measure = meter.push(file.subarray(at, at + pieceBytes));
    bytes += measure.bytes;
    ms += measure.ms ?? Number.NaN;
  }
  return { bytes, ms };
}

describe("the meter of MP3", () => {
  it.each([8000, 22_050, 24_000, 44_100, 48_000])("measures the length of frames at %s Hz", async (rate) => {
    const file = encoded(await createMp3Encoder(rate), 2 * rate);
    for (const pieceBytes of [1, 100, file.length]) {
      const { bytes, ms } = measureFile("audio/mpeg", file, pieceBytes);
      expect(bytes).toBe(file.length);
      expect(ms).toBeGreaterThanOrEqual(2000);
      expect(ms).toBeLessThan(2000 + (3 * 1152 * 1000) / rate); // The encoder adds its delay.
    }
  });

  it("skips a tag before the first frame", async () => {
    const file = encoded(await createMp3Encoder(24_000), 24_000);
    const tagged = Buffer.concat([Buffer.from("ID3\x04\0\0\0\0\0\x05hello", "latin1"), file]);
    expect(measureFile("audio/mpeg", tagged, 10)).toEqual(measureFile("audio/mpeg", file, 10));
  });
});

describe("the meter of Ogg Opus", () => {
  it.each([8000, 24_000])(
    "measures the length of pages at %s Hz, and does not count headers",
    async (rate) => {
      const file = encoded(await createOpusEncoder(rate, createOggContainer(7)), 3 * rate);
      for (const pieceBytes of [1, 1000, file.length]) {
        const { bytes, ms } = measureFile("audio/ogg", file, pieceBytes);
        expect(ms).toBeGreaterThanOrEqual(3000);
        expect(ms).toBeLessThan(3100);
        expect(bytes).toBeLessThan(file.length);
        expect(bytes).toBeGreaterThan(file.length - 300);
      }
    },
  );

  it("fails for bytes that are not an Ogg page", () => {
    expect(() => measureFile("audio/ogg", Buffer.alloc(100), 100)).toThrow("bytes between two pages");
  });
});

async function readEvents(text: string, pieceBytes: number): Promise<string> {
  async function* pieces() {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
  }
  const audio: Uint8Array[] = [];
  for await (const piece of audioOfEvents(pieces())) audio.push(piece);
  return Buffer.concat(audio).toString();
}

const base64 = (text: string) => Buffer.from(text).toString("base64");
const chunk = (text: string) => `event: chunk\ndata: ${JSON.stringify({ data: base64(text) })}\n\n`;
const done = 'event: done\ndata: {"done":true}\n\n';

describe("the audio of server-sent events", () => {
  it.each([1, 7, 10_000])(
    "is the audio of the chunks if the events arrive in pieces of %s bytes",
    async (pieceBytes) => {
      const words = 'event: timestamps\ndata: {"word_timestamps":{"words":["é"]}}\n\n';
      expect(await readEvents(`:\n\n${chunk("one ")}${chunk("two")}${words}${done}`, pieceBytes)).toBe(
        "one two",
      );
    },
  );

  it("is also read from events in the OpenAI form", async () => {
    const delta = `data: ${JSON.stringify({ type: "speech.audio.delta", audio: base64("one") })}\n\n`;
    expect(await readEvents(`${delta}data: {"type":"speech.audio.done"}\n\ndata: [DONE]\n\n`, 9)).toBe("one");
  });

  it("fails with the code of an error event, and if the done event is missing", async () => {
    const failed = readEvents(`${chunk("one")}event: error\ndata: {"code":"model_failed"}\n\n`, 9);
    await expect(failed).rejects.toMatchObject({ code: "model_failed" } satisfies Partial<FailedEvent>);
    await expect(failed).rejects.toBeInstanceOf(FailedEvent);
    await expect(readEvents(chunk("one"), 9)).rejects.toThrow("without a final event");
  });
});
