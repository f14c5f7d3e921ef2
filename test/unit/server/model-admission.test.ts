import { afterEach, expect, test, vi } from "vitest";
import { Admission } from "../../../server/model/admission.ts";
import { answerAfter } from "../../support/peers.ts";

const never = new AbortController().signal;
const limits = { maxStreams: 1, maxQueued: 2, deadlineMs: 10_000 };

afterEach(() => vi.useRealTimers());

test("waiting requests get their turn in the order of their arrival", async () => {
  const admission = new Admission(limits);
  const first = await admission.enter(never);
  const turns: number[] = [];
  const wait = async (name: number) => {
    const release = await admission.enter(never);
    turns.push(name);
    release?.();
  };
  const both = [wait(1), wait(2)];
  expect(admission.queued).toBe(2);
  first?.();
  await Promise.all(both);
  expect(turns).toEqual([1, 2]);
  expect(admission.speaking).toBe(0);
});

test("no new request starts between a stream's end and the turn of a waiting one", async () => {
  const admission = new Admission({ ...limits, maxQueued: 1 });
  const first = await admission.enter(never);
  const waiting = admission.enter(never);
  first?.();
  const late = admission.enter(never);
  expect(admission.speaking).toBe(1);
  (await waiting)?.();
  (await late)?.();
  expect(admission.speaking).toBe(0);
});

test("a full queue refuses at once, with Retry-After", async () => {
  const admission = new Admission({ ...limits, maxQueued: 0 });
  await admission.enter(never);
  await expect(admission.enter(never)).rejects.toMatchObject({ code: "saturated", retryAfterSeconds: 1 });
});

test("a client that disconnects while it waits leaves the queue", async () => {
  const admission = new Admission(limits);
  const release = await admission.enter(never);
  const gone = new AbortController();
  const waiting = admission.enter(gone.signal);
  gone.abort();
  expect(await waiting).toBeUndefined();
  expect(admission.queued).toBe(0);
  release?.();
  expect(admission.speaking).toBe(0);
});

test("a slot that is released twice is free once", async () => {
  const admission = new Admission({ ...limits, maxStreams: 2 });
  const release = await admission.enter(never);
  await admission.enter(never);
  release?.();
  release?.();
  expect(admission.speaking).toBe(1);
});

test("the tier is idle only after the last stream", async () => {
  const admission = new Admission(limits);
  const release = await admission.enter(never);
  let idle = false;
  const waiting = admission.idle().then(() => {
    idle = true;
  });
  await Promise.resolve();
  expect(idle).toBe(false);
  release?.();
  await waiting;
  expect(idle).toBe(true);
});

/** Synthesizes for two seconds of a clock that only the test moves. */
async function speak(admission: Admission, caller: string, served: string[]): Promise<void> {
  const release = await admission.enter(never, caller);
  served.push(caller);
  answerAfter(2_000, () => release?.());
}

test("a client with a hundred waiting requests does not delay the first request of another", async () => {
  vi.useFakeTimers();
  const admission = new Admission({ maxStreams: 1, maxQueued: 100, deadlineMs: 1_000_000 });
  const served: string[] = [];
  const refused: string[] = [];
  const ask = (caller: string) =>
    speak(admission, caller, served).catch(({ code }: { code: string }) => refused.push(`${caller} ${code}`));
  for (let i = 0; i < 101; i++) void ask("busy");
  void ask("quiet"); // the queue is now full
  void ask("quiet");
  await vi.advanceTimersByTimeAsync(8_000);
  expect(served).toEqual(["busy", "busy", "quiet", "busy", "quiet"]);
  expect(refused).toEqual(["busy saturated", "busy saturated"]);
});

test("Retry-After is the time until the client's own turn, estimated from earlier streams", async () => {
  vi.useFakeTimers();
  const admission = new Admission({ maxStreams: 2, maxQueued: 10, deadlineMs: 30_000 });
  for (let i = 0; i < 60; i++) {
    const release = await admission.enter(never, "busy");
    await vi.advanceTimersByTimeAsync(8_000);
    release?.();
  }
  const served: string[] = [];
  const busy = Array.from({ length: 12 }, () => admission.enter(never, "busy").catch(() => undefined));
  await expect(admission.enter(never, "busy")).rejects.toMatchObject({ retryAfterSeconds: 44 });
  const quiet = speak(admission, "quiet", served).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(30_000);
  await Promise.all(busy);
  // The wait depends only on the client's own requests.
  expect(await quiet).toMatchObject({ code: "saturated", retryAfterSeconds: 4 });
});
