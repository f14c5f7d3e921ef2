import { describe, expect, it } from "vitest";
import { parseRoutingTable } from "../../../server/api/upstream/routing-table.ts";

const route = { pool: "p", service: "http://demo-mist:8080", weight: 100, idle: false };
const table = (more: object) => JSON.stringify({ version: 1, profile: "self-hosted", ...more });

describe("a routing table", () => {
  it("maps models to their routes, and is empty without models", () => {
    expect(parseRoutingTable(table({ models: { mist: [route] } })).models).toEqual({ mist: [route] });
    expect(parseRoutingTable(table({})).models).toEqual({});
  });

  it.each([
    ["null", "must have version 1"],
    [table({ version: 2 }), "must have version 1, not 2"],
    [table({ profile: "home" }), "profile must be one of"],
    [table({ licenseRequired: "no" }), 'licenseRequired must be true, false or absent, not "no"'],
    [table({ models: [] }), "models must map each model to its routes"],
    [table({ models: null }), "models must map each model to its routes"],
    [table({ models: { gpt: [] } }), "models has the unknown key gpt"],
    [table({ models: { mist: {} } }), "models.mist must be a list"],
    [table({ models: { mist: [null] } }), "models.mist[0] must be a route"],
    [
      table({ models: { mist: [{ ...route, service: "demo:8080" }] } }),
      "models.mist[0].service must be a URL",
    ],
    [
      table({ models: { mist: [{ ...route, weight: 101 }] } }),
      "weight must be a number from 0 to 100, not 101",
    ],
    [table({ models: { mist: [{ ...route, idle: "no" }] } }), 'idle must be true or false, not "no"'],
  ])("%s is refused: %s", (text, message) => {
    expect(() => parseRoutingTable(text)).toThrow(message);
  });
});
