import { describe, expect, it } from "vitest";
import { readLoadReport } from "../../../server/api/upstream/load-report.ts";
import { Admission } from "../../../server/model/admission.ts";
import { orcaReport } from "../../../server/model/orca.ts";

describe("a replica's report of its load", () => {
  it("is read in the form that the model tier writes", async () => {
    const admission = new Admission({ maxStreams: 2, maxQueued: 2, deadlineMs: 1000 });
    const { signal } = new AbortController();
    for (let i = 0; i < 2; i++) await admission.enter(signal);
    expect(readLoadReport(orcaReport(admission))).toEqual({ streams: 2, capacity: 2 });
  });

  it("includes the queue in its number of streams", () => {
    const text =
      "TEXT application_utilization=1.5, named_metrics.streams=2, named_metrics.capacity=2, named_metrics.queue=1";
    expect(readLoadReport(text)).toEqual({ streams: 3, capacity: 2 });
  });

  it.each([
    [undefined],
    [["TEXT a=1", "TEXT a=2"]],
    [""],
    ["JSON {}"],
    ["TEXT "],
    ["TEXT named_metrics.streams=1"],
    ["TEXT named_metrics.streams=1, named_metrics.capacity=0, named_metrics.queue=0"],
    ["TEXT named_metrics.streams=-1, named_metrics.capacity=2, named_metrics.queue=0"],
    ["TEXT named_metrics.streams=x, named_metrics.capacity=2, named_metrics.queue=0"],
    [`TEXT named_metrics.streams=1, named_metrics.capacity=2, named_metrics.queue=0${" ".repeat(2000)}`],
  ])("is ignored if it is %j", (header) => {
    expect(readLoadReport(header)).toBeUndefined();
  });
});
