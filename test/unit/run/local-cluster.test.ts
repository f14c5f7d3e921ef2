import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { removeStartedCluster } from "../../run/local-cluster.ts";
import { folderOfTests } from "../../support/folder.ts";

const folder = folderOfTests("local-cluster");
let clusters = 0;

function cluster() {
  const file = join(folder, `boot-${clusters++}`);
  let removals = 0;
  const remove = async () => {
    removals++;
    rmSync(file);
  };
  return { file, start: () => writeFileSync(file, ""), remove, removals: () => removals };
}

it("keeps a cluster that ran before the tests", async () => {
  const { file, start, remove, removals } = cluster();
  start();
  await removeStartedCluster(remove, file)();
  expect(removals()).toBe(0);
});

it("removes the cluster of the tests, and keeps a cluster that another run starts afterwards", async () => {
  const { file, start, remove, removals } = cluster();
  const removeCluster = removeStartedCluster(remove, file);
  await removeCluster();
  start();
  await removeCluster();
  expect(removals()).toBe(1);
  start();
  await removeCluster();
  expect(removals()).toBe(1);
});
