import { describe, expect, test } from "vitest";
import { PacedAudio } from "../../../../server/api/sockets/paced-audio.ts";
import { FakeClock } from "../../../support/fake-clock.ts";

/** Raw PCM at 24 kHz. */
const bytesPerSecond = 48_000;

function pcm(seconds: number): Uint8Array {
  return Uint8Array.from({ length: seconds * bytesPerSecond }, (_, at) => at % 251);
}

interface Sent {
  readonly atMs: number;
  readonly audio: Uint8Array;
}

function start(send?: () => Promise<void>) {
  const clock = new FakeClock();
  const startedAtMs = clock.monotonicMs();
  const sent: Sent[] = [];
  const client = new AbortController();
  let reportedSeconds = 0;
  const paced = new PacedAudio({
    clock,
    send: async (audio) => {
      sent.push({ atMs: clock.monotonicMs() - startedAtMs, audio });
      await send?.();
    },
    onSent: (seconds) => {
      reportedSeconds = seconds;
    },
    signal: client.signal,
  });
  const sentSeconds = () => sent.reduce((sum, { audio }) => sum + audio.length, 0) / bytesPerSecond;
  return { clock, sent, client, paced, sentSeconds, reportedSeconds: () => reportedSeconds };
}

function longestPauseMs(sent: readonly Sent[]): number {
  return Math.max(...sent.slice(1).map(({ atMs }, at) => atMs - (sent[at]?.atMs ?? 0)));
}

describe("PacedAudio", () => {
  test("sends audio in pieces of a tenth of a second, ahead of the playback by at most a second", async () => {
    const { clock, sent, paced, sentSeconds } = start();
    await paced.add(pcm(5), 5);
    await clock.advance(0);
    expect(sentSeconds()).toBeCloseTo(1.1, 2);
    await clock.advance(2000);
    expect(sentSeconds()).toBeGreaterThan(2.8);
    expect(sentSeconds()).toBeLessThan(3.2);
    expect(Math.max(...sent.map(({ audio }) => audio.length))).toBeLessThanOrEqual(bytesPerSecond / 10 + 6);
  });

  test("sends the last held audio shortly before the client plays it", async () => {
    const { clock, paced, sentSeconds } = start();
    await paced.add(pcm(2), 2);
    await clock.advance(1700);
    expect(sentSeconds()).toBeGreaterThan(1.75);
    expect(sentSeconds()).toBeLessThan(2);
  });

  test("has no pause of 300 ms while an engine that is as fast as the client pauses between phrases", async () => {
    const { clock, sent, paced } = start();
    for (let phrase = 0; phrase < 5; phrase++) {
      await paced.add(pcm(2), 2);
      await clock.advance(2000);
    }
    await paced.finish();
    expect(longestPauseMs(sent)).toBeLessThan(300);
  });

  test("sends the rest unchanged and immediately when the synthesis ends", async () => {
    const { clock, sent, paced, sentSeconds, reportedSeconds } = start();
    const audio = pcm(3);
    await paced.add(audio.subarray(0, 1442), 1442 / bytesPerSecond);
    await paced.add(audio.subarray(1442), 3 - 1442 / bytesPerSecond);
    await clock.advance(500);
    await paced.finish();
    expect(sentSeconds()).toBe(3);
    expect(reportedSeconds()).toBeCloseTo(3, 6);
    expect(Buffer.concat(sent.map((one) => one.audio)).equals(audio)).toBe(true);
    expect(Math.max(...sent.map((one) => one.audio.length))).toBeLessThanOrEqual(48 * 1024);
    expect(sent.at(-1)?.atMs).toBe(500);
  });

  test("sends late audio immediately, and does not hurry afterwards", async () => {
    const { clock, paced, sentSeconds } = start();
    await paced.add(pcm(0.5), 0.5);
    await clock.advance(5000);
    await paced.add(pcm(2), 2);
    await clock.advance(0);
    expect(sentSeconds()).toBeGreaterThan(1);
    expect(sentSeconds()).toBeLessThan(1.6);
  });

  test("holds at most 512 KiB, and sends earlier audio at once", async () => {
    const { paced, sentSeconds } = start();
    await paced.add(pcm(20), 20);
    expect((20 - sentSeconds()) * bytesPerSecond).toBeLessThanOrEqual(512 * 1024);
  });

  test.each(Array.from({ length: 20 }, (_, at) => at))(
    "sends audio that is added %i microtasks after the previous audio was sent",
    async (microtasks) => {
      const { paced, sentSeconds } = start();
      await paced.add(pcm(0.03), 0.03);
      for (let at = 0; at < microtasks; at++) await Promise.resolve();
      await paced.add(pcm(0.01), 0.01);
      await paced.finish();
      expect(sentSeconds()).toBeCloseTo(0.04, 6);
    },
  );

  test("discards the held audio when the synthesis is stopped", async () => {
    const { clock, client, paced, sentSeconds } = start();
    await paced.add(pcm(3), 3);
    await clock.advance(0);
    const before = sentSeconds();
    client.abort();
    await paced.finish();
    expect(sentSeconds()).toBe(before);
    expect(before).toBeLessThan(1.2);
  });

  test("does not send more until the client can receive more", async () => {
    const { promise: canReceive, resolve } = Promise.withResolvers<void>();
    const { clock, sent, paced } = start(() => canReceive);
    await paced.add(pcm(1), 1);
    await clock.advance(1000);
    expect(sent.length).toBe(1);
    resolve();
    await paced.finish();
    expect(sent.length).toBeGreaterThan(1);
  });

  test("reports the error of a failed message", async () => {
    const { paced } = start(() => Promise.reject(new Error("the connection is closed")));
    await paced.add(pcm(1), 1);
    await expect(paced.finish()).rejects.toThrow("the connection is closed");
  });
});
