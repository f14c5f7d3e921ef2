import { expect, test } from "vitest";
import { logOutage } from "../../../server/start/log-outage.ts";

const operation = {
  subject: "API keys",
  operation: "read from the database",
  meanwhile: "the last known keys stay valid",
};

test("an outage is logged when it begins and when it ends", () => {
  const logged: unknown[] = [];
  const write = (level: string) => (fields: object, message: string) => logged.push([level, fields, message]);
  const log = { info: write("info"), warn: write("warn"), error: write("error") };
  const report = logOutage(log, operation, { folder: "/spool" });
  const err = new Error("connection refused");
  report(err);
  report(undefined);
  expect(logged).toEqual([
    [
      "error",
      { err, folder: "/spool" },
      "API keys cannot be read from the database; the last known keys stay valid",
    ],
    ["info", { folder: "/spool" }, "API keys can be read from the database again"],
  ]);
});
