import { describe, expect, it } from "vitest";
import type { VoiceEngine } from "../../../server/engine/engines.ts";
import type { Engine } from "../../../server/engine/runtime/engine.ts";
import { EngineAdmission } from "../../../server/model/engine-admission.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const never = new AbortController().signal;
const deadlineMs = 5_000;

function speaker(realTimeStreams?: number, kind: "neural" | "flite" = "neural") {
  const engine = { name: "kokoro", realTimeStreams } as Engine;
  return { engine, voice: { kind, speaker: 0 } as unknown as VoiceEngine["voice"] };
}

describe("the admission to the engine of a mounted voice", () => {
  it.each([
    ["a built-in engine", speaker(2, "flite")],
    ["an engine of unknown speed", speaker()],
  ])("does not limit %s", (_what, unlimited) => {
    const admission = new EngineAdmission(deadlineMs, new FakeClock());
    expect(admission.of(unlimited)).toBeUndefined();
    expect(admission.hasRoom(unlimited)).toBe(true);
  });

  it("accepts as many streams as the engine serves in real time, and queues the same number", async () => {
    const clock = new FakeClock();
    const admissions = new EngineAdmission(deadlineMs, clock);
    const kokoro = speaker(2);
    const admission = admissions.of(kokoro);
    expect(admissions.of(kokoro)).toBe(admission);
    const release = await admission?.enter(never);
    expect(admissions.hasRoom(kokoro)).toBe(true);
    await admission?.enter(never);
    expect(admissions.hasRoom(kokoro)).toBe(false);
    await expect(admission?.enter(never, "", false)).rejects.toMatchObject({
      code: "saturated",
      retryAfterSeconds: expect.any(Number),
    });
    const waiting = [admission?.enter(never), admission?.enter(never)];
    await expect(admission?.enter(never)).rejects.toMatchObject({ code: "saturated" });
    release?.();
    expect(await waiting[0]).toBeTypeOf("function");
    const late = expect(waiting[1]).rejects.toMatchObject({ code: "saturated" });
    await clock.advance(deadlineMs);
    await late;
    expect(admissions.hasRoom(speaker(1))).toBe(true);
  });

  it("follows a speed that changes", async () => {
    const admissions = new EngineAdmission(deadlineMs, new FakeClock());
    const engine = { name: "kokoro", realTimeStreams: 1 };
    const kokoro = { ...speaker(), engine: engine as Engine };
    const admission = admissions.of(kokoro);
    const counts = () => [admission?.speaking, admission?.queued];
    const first = await admission?.enter(never);
    const second = admission?.enter(never);
    expect(counts()).toEqual([1, 1]);
    expect(admissions.hasRoom(kokoro)).toBe(false);
    engine.realTimeStreams = 2;
    expect(admissions.hasRoom(kokoro)).toBe(true);
    const third = admission?.enter(never);
    const leaveSecond = await second;
    expect(counts()).toEqual([2, 1]); // The third request did not overtake the second request.
    engine.realTimeStreams = 1;
    first?.();
    expect(counts()).toEqual([1, 1]);
    leaveSecond?.();
    expect(counts()).toEqual([1, 0]);
    (await third)?.();
    expect(counts()).toEqual([0, 0]);
  });
});
