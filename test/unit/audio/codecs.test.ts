import { describe, expect, it } from "vitest";
import type { Encoder } from "../../../server/audio/encoder.ts";
import { createMp3Encoder, mp3FileHeader, mp3RateFor } from "../../../server/audio/mp3.ts";
import { createOggContainer } from "../../../server/audio/ogg-opus.ts";
import { createOpusEncoder, opusRates } from "../../../server/audio/opus.ts";
import { createWebmContainer } from "../../../server/audio/webm-opus.ts";
import { decodeAudio, likenessDb, toneOf } from "../../support/audio/audio.ts";
import { readWebm } from "../../support/audio/webm.ts";
import { turnOf } from "../../support/seed.ts";

/** Returns a tone with increasing volume and frequency, so that a shift in time is detectable. */
function sweep(count: number, rate: number): Int16Array {
  return Int16Array.from({ length: count }, (_, i) => {
    const seconds = i / rate;
    return Math.round(
      (4000 + (12_000 * i) / count) * Math.sin(2 * Math.PI * (300 + 200 * seconds) * seconds),
    );
  });
}

function encodeAll(encoder: Encoder, samples: Int16Array, piece: number): Buffer {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < samples.length; at += piece)
    pieces.push(encoder.encode(samples.subarray(at, at + piece)));
  pieces.push(encoder.finish());
  encoder.close?.();
  return Buffer.concat(pieces);
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Int16Array) =>
  new Uint8Array(buffer, byteOffset, byteLength);

const mp3Rates = [8000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000];

describe("an MP3 file", () => {
  it.each(mp3Rates)("at %i Hz has the exact length of the speech, without a shift", async (rate) => {
    // Each run tests the edge lengths at one rate of each MPEG version.
    const isTurn = mp3Rates.indexOf(rate) % 3 === turnOf(3);
    const edges = isTurn ? [1700, 576 * 20, 1152 * 13 - 1] : [];
    for (const count of [rate + 123, ...edges]) {
      const samples = sweep(count, rate);
      const audio = encodeAll(await createMp3Encoder(rate), samples, Math.floor(rate / 10));
      const file = Buffer.concat([mp3FileHeader(rate, audio, count), audio]);
      const decoded = await decodeAudio(file);
      expect(decoded).toMatchObject({ codec: "mp3", rate });
      expect(decoded.samples.length).toBe(count);
      if (count > rate / 2) expect(likenessDb(decoded.samples, samples)).toBeGreaterThan(15);
    }
  });

  it("has the same bytes for any division of the input, also after another encoder was abandoned", async () => {
    const samples = sweep(30_000, 24_000);
    const first = encodeAll(await createMp3Encoder(24_000), samples, 30_000);
    const abandoned = await createMp3Encoder(8000);
    abandoned.encode(samples);
    abandoned.close?.();
    for (const piece of [999, 20_000]) {
      expect(encodeAll(await createMp3Encoder(24_000), samples, piece).equals(first)).toBe(true);
    }
  });

  it("has a rate that MP3 supports", async () => {
    await expect(createMp3Encoder(9999)).rejects.toThrow("9999");
    expect([1, 8000, 8001, 22_050, 24_001, 48_000, 384_000].map(mp3RateFor)).toEqual([
      8000, 8000, 11_025, 22_050, 32_000, 48_000, 48_000,
    ]);
  });
});

describe.each([
  { name: "Ogg", createContainer: () => createOggContainer(7), onePacket: [7, 0] },
  // FFmpeg ignores the pre-skip of a WebM file that has only one packet. The test below parses such files.
  { name: "WebM", createContainer: createWebmContainer, onePacket: [] },
])("an Opus file in $name", ({ createContainer, onePacket }) => {
  it.each(opusRates)("at %i Hz has the exact length of the speech, without a shift", async (rate) => {
    const frame = rate / 50;
    const isTurn = opusRates.indexOf(rate) % 2 === turnOf(2);
    const edges = isTurn ? [...onePacket, frame * 20, frame * 60 - rate * 0.0065] : [];
    for (const count of [rate + 123, ...edges]) {
      const samples = sweep(count, rate);
      const encoder = await createOpusEncoder(rate, createContainer());
      const file = encodeAll(encoder, samples, Math.floor(rate / 10) + 1);
      const decoded = await decodeAudio(file);
      expect(decoded).toMatchObject({ codec: "opus", rate: 48_000 });
      expect(decoded.samples.length).toBe((count * 48_000) / rate);
      if (count > rate / 2) {
        const resampled = decoded.samples.filter((_, i) => i % (48_000 / rate) === 0);
        expect(likenessDb(resampled, samples)).toBeGreaterThan(5); // libopus itself shifts by 0.1 ms.
      }
    }
  });

  it("decodes to the same samples for any division of the input", async () => {
    const samples = sweep(24_000, 24_000);
    const abandoned = await createOpusEncoder(24_000, createContainer());
    abandoned.encode(samples.subarray(0, 5000));
    abandoned.close?.();
    const decoded = await Promise.all(
      [480, 1111, 24_000].map(async (piece) => {
        const file = encodeAll(await createOpusEncoder(24_000, createContainer()), samples, piece);
        return (await decodeAudio(file)).samples;
      }),
    );
    for (const other of decoded)
      expect(Buffer.compare(bytesOf(other), bytesOf(decoded[0] as Int16Array))).toBe(0);
    expect(toneOf({ samples: decoded[0] as Int16Array, rate: 48_000 })).toBeGreaterThan(300);
  });

  it("is refused at rates that Opus does not support", async () => {
    await expect(createOpusEncoder(22_050, createContainer())).rejects.toThrow("22050");
  });

  it("is complete for a minute of audio in one piece", async () => {
    const encoder = await createOpusEncoder(8000, createContainer());
    const file = encodeAll(encoder, sweep(480_000, 8000), 480_000);
    expect((await decodeAudio(file)).samples.length).toBe(60 * 48_000);
  });
});

describe("the elements of a WebM file", () => {
  const lengths = opusRates.flatMap((rate) => [0, 7, rate + 123].map((count) => ({ rate, count })));

  it.each(lengths)(
    "say where the speech begins and ends: $count samples at $rate Hz",
    async ({ rate, count }) => {
      const encoder = await createOpusEncoder(rate, createWebmContainer());
      const webm = readWebm(encodeAll(encoder, sweep(count, rate), Math.floor(rate / 10) + 1));
      expect(webm).toMatchObject({
        docType: "webm",
        codec: "A_OPUS",
        samplingRate: 48_000,
        channels: 1,
        seekPreRollNs: 80_000_000,
      });
      const { opusHead, packets } = webm;
      expect(opusHead.toString("latin1", 0, 8)).toBe("OpusHead");
      const preSkip = opusHead.readUInt16LE(10);
      expect(webm.codecDelayNs).toBe(Math.round((preSkip * 1e9) / 48_000));
      expect(packets.map(({ atMs }) => atMs)).toEqual(packets.map((_, i) => i * 20));
      expect(packets.slice(0, -1).filter(({ discardNs }) => discardNs !== 0)).toEqual([]);
      const discarded = Math.round(((packets.at(-1)?.discardNs ?? 0) * 48_000) / 1e9);
      const end = packets.length * 960 - discarded;
      expect(end - preSkip).toBe((count * 48_000) / rate);
      // The same packets are valid Opus, as FFmpeg hears in the other container.
      const ogg = createOggContainer(7);
      const bytes = packets.map((packet) => packet.bytes);
      const heard = await decodeAudio(
        Buffer.concat([ogg.start(rate, preSkip), ogg.end(bytes, bytes.length, end)]),
      );
      expect(heard.samples.length).toBe((count * 48_000) / rate);
    },
  );
});
