import { expect, it } from "vitest";
import { languages } from "../../../config/contract/voices.ts";
import { samples } from "../../../server/dashboard/pages/playground.ts";

it("there is a sample for every language of the catalogue", () => {
  expect(Object.keys(samples)).toEqual(Object.keys(languages));
});
