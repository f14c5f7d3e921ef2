import { defineConfig } from "vitest/config";

// `make test` reads the results of the tests from this file.
const report = process.env.VITEST_JSON;

const patience = Number(process.env.PATIENCE ?? 1);
// These limits only end tests that hang. They are longer than the limit of `eventually`, so that its error is shown.
const TEST_LIMIT_MS = 300_000 * patience;
const HOOK_LIMIT_MS = 600_000 * patience;
/** This test uninstalls the operator, on which every other e2e test depends. */
const replacesOperator = "test/e2e/release.test.ts";
const expect = { poll: { timeout: 120_000 * patience, interval: 50 } };

export default defineConfig({
  test: {
    ...(report && { reporters: ["default", "json"], outputFile: { json: report } }),
    // Each project has its own group, because the numbers of workers differ and test-repeat runs files of several projects.
    projects: [
      // Some tests start processes (tools, commands), which are slow on a busy machine.
      {
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts"],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
          testTimeout: TEST_LIMIT_MS,
          expect,
        },
      },
      {
        test: {
          name: "server",
          include: ["test/integration/{server,contract,load}/**/*.test.ts"],
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
          testTimeout: TEST_LIMIT_MS,
          expect,
          hookTimeout: HOOK_LIMIT_MS,
        },
      },
      {
        test: {
          name: "cluster",
          include: ["test/integration/{chart,cluster,crds,monitoring,operator}/**/*.test.ts"],
          globalSetup: ["test/support/cluster/cluster-setup.ts"],
          // Each file has its own namespaces and waits for the API server most of the time.
          maxWorkers: 3,
          sequence: { groupOrder: 3 },
          testTimeout: TEST_LIMIT_MS,
          expect,
          hookTimeout: HOOK_LIMIT_MS,
        },
      },
      {
        test: {
          name: "speech",
          include: ["test/speech/**/*.test.ts"],
          sequence: { groupOrder: 4 },
          testTimeout: TEST_LIMIT_MS,
          expect,
          hookTimeout: HOOK_LIMIT_MS,
        },
      },
      {
        test: {
          name: "clients",
          include: ["test/clients/**/*.test.ts"],
          maxWorkers: 2,
          sequence: { groupOrder: 12 },
          testTimeout: TEST_LIMIT_MS,
          expect,
          hookTimeout: HOOK_LIMIT_MS,
        },
      },
      {
        test: {
          name: "browser",
          include: ["test/browser/**/*.test.ts"],
          sequence: { groupOrder: 5 },
          testTimeout: TEST_LIMIT_MS,
          expect,
          hookTimeout: HOOK_LIMIT_MS,
        },
      },
      {
        test: {
          name: "vllm",
          include: ["test/vllm/**/*.test.ts"],
          maxWorkers: 1,
          sequence: { groupOrder: 6 },
          testTimeout: TEST_LIMIT_MS,
          expect,
          hookTimeout: HOOK_LIMIT_MS,
        },
      },
      {
        test: {
          name: "release",
          include: ["test/release/*.test.ts"],
          sequence: { groupOrder: 13 },
          // The hook builds the images twice, and cosign the first time.
          testTimeout: TEST_LIMIT_MS,
          expect,
          hookTimeout: 4 * HOOK_LIMIT_MS,
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/e2e/*.test.ts"],
          exclude: [replacesOperator],
          globalSetup: ["test/support/cluster/e2e-setup.ts"],
          // Each file has its own namespaces and waits for pods most of the time.
          maxWorkers: 2,
          sequence: { groupOrder: 7 },
          testTimeout: TEST_LIMIT_MS,
          expect,
          hookTimeout: HOOK_LIMIT_MS,
        },
      },
      {
        test: {
          // These tests run after all other e2e tests, because they uninstall the operator for some time.
          name: "e2e-release",
          include: [replacesOperator],
          globalSetup: ["test/support/cluster/e2e-setup.ts"],
          fileParallelism: false,
          sequence: { groupOrder: 11 },
          testTimeout: TEST_LIMIT_MS,
          expect,
          hookTimeout: HOOK_LIMIT_MS,
        },
      },
      {
        test: {
          // Each `make test` runs one of these long tests.
          name: "e2e-rotation",
          include: ["test/e2e/rotation/*.test.ts"],
          globalSetup: ["test/support/cluster/e2e-setup.ts"],
          fileParallelism: false,
          sequence: { groupOrder: 10 },
          testTimeout: TEST_LIMIT_MS,
          expect,
          hookTimeout: HOOK_LIMIT_MS,
        },
      },
      {
        test: {
          name: "e2e-long",
          include: ["test/e2e/long/*.test.ts", "test/e2e/rotation/{accounts,scaling,upgrade}.test.ts"],
          globalSetup: ["test/support/cluster/e2e-setup.ts"],
          fileParallelism: false,
          sequence: { groupOrder: 8 },
          testTimeout: TEST_LIMIT_MS,
          expect,
          hookTimeout: HOOK_LIMIT_MS,
        },
      },
      {
        test: {
          name: "keda",
          include: ["test/e2e/keda/*.test.ts", "test/e2e/rotation/keda.test.ts"],
          globalSetup: ["test/support/cluster/e2e-setup.ts"],
          fileParallelism: false,
          sequence: { groupOrder: 9 },
          testTimeout: TEST_LIMIT_MS,
          expect,
          hookTimeout: HOOK_LIMIT_MS,
        },
      },
    ],
  },
});
