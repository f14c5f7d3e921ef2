import { describe, expect, it } from "vitest";
import { createMemoryBudget } from "../../../server/api/request/memory-budget.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";

describe("the memory budget of requests", () => {
  it("is held until it is freed, and freed once", async () => {
    const budget = createMemoryBudget(100, 1000);
    const mine = budget.open();
    await mine.take(40);
    await mine.take(40);
    expect(budget.heldBytes()).toBe(80);
    mine.free();
    mine.free();
    expect(budget.heldBytes()).toBe(0);
  });

  it("is granted in the order of the requests", async () => {
    const budget = createMemoryBudget(100, 1000);
    const [first, large, small] = [budget.open(), budget.open(), budget.open()];
    await first.take(60);
    const got: string[] = [];
    const waiting = [
      large.take(90).then(() => got.push("large")),
      small.take(10).then(() => got.push("small")),
    ];
    await settle();
    expect(got).toEqual([]); // the small request does not overtake the large one, although it would fit
    first.free();
    await Promise.all(waiting);
    expect(got).toEqual(["large", "small"]);
    expect(budget.heldBytes()).toBe(100);
  });

  it("is refused after a limited wait, and the next waiting request continues", async () => {
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

  it("is released by the latest request if all holders need more, and the others get it", async () => {
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

  it("is refused at once if waiting would not help", async () => {
    const budget = createMemoryBudget(100, 60_000);
    await expect(budget.open().take(101)).rejects.toMatchObject({ code: "overloaded" });
    const over = budget.open();
    over.free();
    await expect(over.take(1)).rejects.toMatchObject({ code: "overloaded" });
  });

  it("is not kept by a request that ends while it waits or as its turn comes", async () => {
    const budget = createMemoryBudget(100, 60_000);
    const [first, gone, lucky] = [budget.open(), budget.open(), budget.open()];
    await first.take(100);
    const leaving = gone.take(50);
    gone.free();
    await expect(leaving).rejects.toMatchObject({ code: "overloaded" });
    const turn = lucky.take(50);
    first.free(); // grants the waiting request
    lucky.free(); // before the client could notice the grant
    await turn;
    expect(budget.heldBytes()).toBe(0);
  });
});
