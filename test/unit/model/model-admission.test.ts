import { afterEach, expect, test, vi } from "vitest";
import { Admission } from "../../../server/model/admission.ts";
import { answerAfter } from "../../support/peers.ts";

const never = new AbortController().signal;
const limits = { maxStreams: 1, maxQueued: 2, deadlineMs: 10_000 };

afterEach(() => vi.useRealTimers());

test("the admission starts waiting requests in the order of their arrival", async () => {
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

test("the admission starts a waiting request before a new request when a stream ends", async () => {
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

test("the admission rejects a request immediately with Retry-After if the queue is full", async () => {
  const admission = new Admission({ ...limits, maxQueued: 0 });
  await admission.enter(never);
  await expect(admission.enter(never)).rejects.toMatchObject({ code: "saturated", retryAfterSeconds: 1 });
});

test("the admission removes a request from the queue when its client disconnects", async () => {
  const admission = new Admission(limits);
  const release = await admission.enter(never);
  const disconnected = new AbortController();
  const waiting = admission.enter(disconnected.signal);
  disconnected.abort();
  expect(await waiting).toBeUndefined();
  expect(admission.queued).toBe(0);
  release?.();
  expect(admission.speaking).toBe(0);
});

test("the admission frees a slot once if it is released twice", async () => {
  const admission = new Admission({ ...limits, maxStreams: 2 });
  const release = await admission.enter(never);
  await admission.enter(never);
  release?.();
  release?.();
  expect(admission.speaking).toBe(1);
});

/** Occupies a slot for two seconds of the fake clock. */
async function occupySlot(admission: Admission, key: string, served: string[]): Promise<void> {
  const release = await admission.enter(never, key);
  served.push(key);
  answerAfter(2_000, () => release?.());
}

test("the admission serves a key with one request before the waiting requests of a busy key", async () => {
  vi.useFakeTimers();
  const admission = new Admission({ maxStreams: 1, maxQueued: 100, deadlineMs: 1_000_000 });
  const served: string[] = [];
  const rejected: string[] = [];
  const request = (key: string) =>
    occupySlot(admission, key, served).catch(({ code }: { code: string }) => rejected.push(`${key} ${code}`));
  for (let i = 0; i < 101; i++) void request("busy");
  void request("quiet"); // The queue is full now.
  void request("quiet");
  await vi.advanceTimersByTimeAsync(8_000);
  expect(served).toEqual(["busy", "busy", "quiet", "busy", "quiet"]);
  expect(rejected).toEqual(["busy saturated", "busy saturated"]);
});

test("the admission estimates Retry-After of a key from earlier streams and the queue before it", async () => {
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
  const quiet = occupySlot(admission, "quiet", served).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(30_000);
  await Promise.all(busy);
  // The waiting requests of the other key do not increase the estimate.
  expect(await quiet).toMatchObject({ code: "saturated", retryAfterSeconds: 4 });
});
