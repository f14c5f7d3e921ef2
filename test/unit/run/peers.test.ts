import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { answerAfter, pauseOfPeer, sendEvery } from "../../support/peers.ts";

describe("a slow peer", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("responds once after its delay, and not after it is cancelled", () => {
    const answers: string[] = [];
    answerAfter(100, () => answers.push("kept"));
    const callOff = answerAfter(100, () => answers.push("called off"));
    vi.advanceTimersByTime(99);
    expect(answers).toEqual([]);
    callOff();
    vi.advanceTimersByTime(1_000);
    expect(answers).toEqual(["kept"]);
  });

  it("sends at every interval until it is stopped", () => {
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

  it("ends its pause early when it is aborted", async () => {
    const hangUp = new AbortController();
    const pause = pauseOfPeer(3_600_000, hangUp.signal);
    hangUp.abort();
    await expect(pause).rejects.toThrow("aborted");
  });
});
