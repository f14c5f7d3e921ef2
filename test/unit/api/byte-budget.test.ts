import { describe, expect, it } from "vitest";
import { createMemoryBudget } from "../../../server/api/request/memory-budget.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";

describe("the memory budget of requests", () => {
  it("holds bytes until the request frees them, and frees them once", async () => {
    const budget = createMemoryBudget(100, 1000);
    const request = budget.open();
    await request.take(40);
    await request.take(40);
    expect(budget.heldBytes()).toBe(80);
    request.free();
    request.free();
    expect(budget.heldBytes()).toBe(0);
  });

  it("grants bytes in the order of the requests", async () => {
    const budget = createMemoryBudget(100, 1000);
    const [first, large, small] = [budget.open(), budget.open(), budget.open()];
    await first.take(60);
    const granted: string[] = [];
    const waiting = [
      large.take(90).then(() => granted.push("large")),
      small.take(10).then(() => granted.push("small")),
    ];
    await settle();
    expect(granted).toEqual([]); // The small request waits behind the large request, although it would fit.
    first.free();
    await Promise.all(waiting);
    expect(granted).toEqual(["large", "small"]);
    expect(budget.heldBytes()).toBe(100);
  });

  it("rejects a request after a limited wait, and grants the next waiting request", async () => {
    const clock = new FakeClock();
    const budget = createMemoryBudget(100, 20, clock);
    const [first, late, behind] = [budget.open(), budget.open(), budget.open()];
    await first.take(60);
    const refused = late.take(90);
    const served = behind.take(10);
    void clock.advance(20);
    await expect(refused).rejects.toMatchObject({ code: "overloaded", status: 503, retryAfterSeconds: 2 });
    await served;
    expect(budget.heldBytes()).toBe(70);
  });

  it("rejects the latest request if all holders need more, and grants its bytes to the others", async () => {
    const budget = createMemoryBudget(100, 60_000);
    const [first, second, third] = [budget.open(), budget.open(), budget.open()];
    for (const each of [first, second, third]) await each.take(33);
    const waiting = [first.take(30), second.take(30)];
    await expect(third.take(30)).rejects.toMatchObject({ code: "overloaded" });
    await waiting[0];
    expect(budget.heldBytes()).toBe(96);
    first.free();
    await waiting[1];
    expect(budget.heldBytes()).toBe(63);
  });

  it("rejects a request immediately if a wait cannot help", async () => {
    const budget = createMemoryBudget(100, 60_000);
    await expect(budget.open().take(101)).rejects.toMatchObject({ code: "overloaded" });
    const freed = budget.open();
    freed.free();
    await expect(freed.take(1)).rejects.toMatchObject({ code: "overloaded" });
  });

  it("keeps no bytes for a request that ends while it waits or when it is granted", async () => {
    const budget = createMemoryBudget(100, 60_000);
    const [first, waiting, granted] = [budget.open(), budget.open(), budget.open()];
    await first.take(100);
    const ended = waiting.take(50);
    waiting.free();
    await expect(ended).rejects.toMatchObject({ code: "overloaded" });
    const turn = granted.take(50);
    first.free(); // This grants the waiting request.
    granted.free(); // The promise of the grant has not resolved yet.
    await turn;
    expect(budget.heldBytes()).toBe(0);
  });
});
