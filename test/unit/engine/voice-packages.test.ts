import { afterAll, expect, test } from "vitest";
import { findPackages } from "../../../server/engine/neural/folder.ts";
import { VoicesFolder } from "../../support/voices/folder.ts";

const folder = new VoicesFolder();
afterAll(() => folder.delete());

test("findPackages excludes the folder of another model", async () => {
  folder.json("manifest.json", {});
  folder.json("big/manifest.json", {});
  folder.json("small/manifest.json", {});
  const found = async (except?: string) => (await findPackages(folder.path, except)).map(({ file }) => file);
  expect(await found()).toEqual(["big/manifest.json", "manifest.json", "small/manifest.json"]);
  expect(await found(`${folder.path}/big/`)).toEqual(["manifest.json", "small/manifest.json"]);
  expect(await found(folder.path)).toEqual(["big/manifest.json", "small/manifest.json"]);
});
