/** The suites of `make test`, the builds that they need, and their time limits. */

/** Builds and starts that run in the background from the beginning, in this order. */
export const preparations = {
  tools: ["test/cluster/tools.sh"],
  cluster: ["test/cluster/install.sh"],
  judges: ["test/judges/build.sh"],
  collector: ["test/collector/build.sh"],
  keda: ["test/keda/build.sh"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type Preparation = keyof typeof preparations;

export interface Suite {
  readonly name: string;
  readonly command: readonly string[];
  readonly needs: readonly Preparation[];
  /** The suite is ended after this time, and counts as failed. */
  readonly limitMinutes: number;
}

/** The long tests, of which each run contains one. */
export const proofs = ["accounts", "keda", "scaling", "upgrade"];

const vitest = (...args: string[]) => ["node_modules/.bin/vitest", "run", ...args];

/**
 * Suites of a lane run one after the other; the lanes run side by side, because each waits a third of its time: for processes, pods and the API server.
 * @param hasClients whether the published clients of the WebSockets are installed: 1 GB, which only `make test-clients` installs.
 */
export function lanes(proof: string, hasClients: boolean): readonly (readonly Suite[])[] {
  const clients: Suite = {
    name: "clients",
    command: vitest("--project", "clients"),
    needs: [],
    limitMinutes: 10,
  };
  return [
    [
      { name: "check", command: ["make", "--no-print-directory", "check"], needs: [], limitMinutes: 15 },
      { name: "unit", command: vitest("--project", "unit"), needs: [], limitMinutes: 15 },
      { name: "server", command: vitest("--project", "server"), needs: [], limitMinutes: 40 },
      ...(hasClients ? [clients] : []),
    ],
    [
      {
        name: "e2e",
        command: vitest("--project", "e2e", "--project", "e2e-release"),
        needs: ["cluster"],
        limitMinutes: 30,
      },
      {
        name: "rotation",
        command: vitest("--project", "e2e-rotation", `test/e2e/rotation/${proof}.test.ts`),
        needs: proof === "keda" ? ["cluster", "keda"] : ["cluster"],
        limitMinutes: 30,
      },
      {
        name: "cluster",
        command: vitest("--project", "cluster"),
        needs: ["tools", "judges", "collector"],
        limitMinutes: 30,
      },
    ],
  ];
}
