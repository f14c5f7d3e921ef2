import { describe, expect, it } from "vitest";
import { createMulawEncoder } from "../../../server/audio/mulaw.ts";
import { createPcmEncoder } from "../../../server/audio/pcm.ts";
import { createWavStreamEncoder, wavHeader } from "../../../server/audio/wav.ts";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

describe("the WAV encoder", () => {
  it("writes the 44 bytes of a canonical header", () => {
    const riff = "52494646" + "0c040000" + "57415645";
    const format = "666d7420" + "10000000" + "0100" + "0100" + "c05d0000" + "80bb0000" + "0200" + "1000";
    expect(hex(wavHeader(24_000, 1000))).toBe(`${riff}${format}64617461e8030000`);
  });

  it("writes the header with the first samples, and marks the sizes as unknown", () => {
    const encoder = createWavStreamEncoder(8000);
    expect(encoder.encode(new Int16Array(0)).length).toBe(0);
    const first = encoder.encode(Int16Array.of(1, -1));
    expect(first.length).toBe(48);
    expect(hex(first.subarray(4, 8))).toBe("ffffffff");
    expect(hex(first.subarray(40))).toBe("ffffffff" + "0100ffff");
    expect(hex(encoder.encode(Int16Array.of(2)))).toBe("0200");
    expect(encoder.finish().length).toBe(0);
  });

  it("writes only a header if the audio is empty", () => {
    expect(createWavStreamEncoder(8000).finish().length).toBe(44);
  });
});

describe("the PCM encoder", () => {
  it("writes little-endian samples, also of a part of a larger array", () => {
    expect(hex(createPcmEncoder().encode(Int16Array.of(9, 258, -2, 9).subarray(1, 3)))).toBe("0201feff");
  });
});

describe("the mu-law encoder", () => {
  const encode = (sample: number) => createMulawEncoder().encode(Int16Array.of(sample))[0] as number;
  /** Decodes a mu-law byte with the formula of G.711. */
  const decode = (byte: number) => {
    const bits = ~byte & 0xff;
    const magnitude = (((bits & 0x0f) << 3) + 0x84) << ((bits >> 4) & 7);
    return bits & 0x80 ? 0x84 - magnitude : magnitude - 0x84;
  };

  it.each([
    [0, 0xff],
    [-1, 0x7f],
    [32_767, 0x80],
    [-32_768, 0x00],
    [1000, 0xce],
    [-1000, 0x4e],
  ])("encodes %i like G.711", (sample, byte) => {
    expect(encode(sample)).toBe(byte);
  });

  it("differs from the sample by at most half a step", () => {
    for (let sample = -32_600; sample <= 32_600; sample += 7) {
      const step = 8 * 2 ** Math.max(0, Math.floor(Math.log2(Math.abs(sample) + 132)) - 7);
      expect(Math.abs(decode(encode(sample)) - sample)).toBeLessThanOrEqual(step / 2 + 1);
    }
  });
});
