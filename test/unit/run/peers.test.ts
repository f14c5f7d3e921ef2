import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { answerAfter, pauseOfPeer, sendEvery } from "../../support/peers.ts";

describe("the helpers for a slow peer", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("answerAfter calls back once after the delay, and never after a cancellation", () => {
    const answers: string[] = [];
    answerAfter(100, () => answers.push("first"));
    const cancel = answerAfter(100, () => answers.push("cancelled"));
    vi.advanceTimersByTime(99);
    expect(answers).toEqual([]);
    cancel();
    vi.advanceTimersByTime(1_000);
    expect(answers).toEqual(["first"]);
  });

  it("sendEvery calls back at every interval until it is stopped", () => {
    let sent = 0;
    const end = sendEvery(10, () => {
      sent += 1;
    });
    vi.advanceTimersByTime(35);
    expect(sent).toBe(3);
    end();
    vi.advanceTimersByTime(100);
    expect(sent).toBe(3);
  });

  it("pauseOfPeer rejects when its signal aborts", async () => {
    const hangUp = new AbortController();
    const pause = pauseOfPeer(3_600_000, hangUp.signal);
    hangUp.abort();
    await expect(pause).rejects.toThrow("aborted");
  });
});
