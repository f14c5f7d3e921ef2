/** The suites of `make test`, the builds that they need, and their time limits. */

/** Commands that prepare suites. They run in the background from the start of the run, in this order. */
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
  /** A suite that takes longer is ended, and counts as failed. */
  readonly limitMinutes: number;
}

/** The long tests. Each run contains one of them. */
export const proofs = ["accounts", "keda", "scaling", "upgrade"];

const vitest = (...args: string[]) => ["node_modules/.bin/vitest", "run", ...args];

/**
 * Returns the suites in lanes. The suites of a lane run one after the other. The lanes run concurrently,
 * because each lane waits a third of its time for processes, pods and the API server.
 *
 * @param hasClients whether the published clients of the WebSockets are installed. They need 1 GB, and only
 * `make test-clients` installs them.
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
