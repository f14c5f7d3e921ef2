import { defineConfig } from "vitest/config";

// `make test` counts what ran by this file
const report = process.env.VITEST_JSON;

export default defineConfig({
  test: {
    ...(report && { reporters: ["default", "json"], outputFile: { json: report } }),
    projects: [
      // some start processes (tools, commands), which take their time on a busy machine
      {
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts"],
          testTimeout: 30_000,
          expect: { poll: { timeout: 15_000 } },
        },
      },
      {
        test: {
          name: "load",
          include: ["test/integration/load/**/*.test.ts"],
          // time and memory are looked at: one after the other
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: "server",
          include: ["test/integration/{server,contract}/**/*.test.ts"],
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: "cluster",
          include: ["test/integration/{chart,cluster,crds,monitoring,operator}/**/*.test.ts"],
          globalSetup: ["test/support/cluster-setup.ts"],
          // each file has namespaces of its own and waits for the API server most of the time
          maxWorkers: 3,
          sequence: { groupOrder: 3 },
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: "speech",
          include: ["test/speech/**/*.test.ts"],
          testTimeout: 600_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: "browser",
          include: ["test/browser/**/*.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: "vllm",
          include: ["test/vllm/**/*.test.ts"],
          maxWorkers: 1,
          testTimeout: 120_000,
          // vLLM takes a minute to start, several on a busy machine
          hookTimeout: 900_000,
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/e2e/*.test.ts"],
          globalSetup: ["test/support/e2e-setup.ts"],
          fileParallelism: false,
          testTimeout: 180_000,
          hookTimeout: 600_000,
        },
      },
      {
        test: {
          name: "e2e-long",
          include: ["test/e2e/long/*.test.ts"],
          globalSetup: ["test/support/e2e-setup.ts"],
          fileParallelism: false,
          testTimeout: 180_000,
          hookTimeout: 600_000,
        },
      },
      {
        test: {
          name: "keda",
          include: ["test/e2e/keda/*.test.ts"],
          globalSetup: ["test/support/e2e-setup.ts"],
          fileParallelism: false,
          testTimeout: 180_000,
          hookTimeout: 600_000,
        },
      },
    ],
  },
});
