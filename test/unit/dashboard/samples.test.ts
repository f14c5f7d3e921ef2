import { expect, it } from "vitest";
import { languages } from "../../../config/contract/voices.ts";
import { samples } from "../../../server/dashboard/pages/playground.ts";

it("every language of the catalogue has a sample", () => {
  expect(Object.keys(samples)).toEqual(Object.keys(languages));
});
