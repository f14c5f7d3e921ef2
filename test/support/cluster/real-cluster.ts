/** Runs kubectl and helm for tests on a real cluster. `KUBECONFIG` selects the cluster. */
import { execFile, spawn } from "node:child_process";
import { stringify } from "yaml";
import { eventually } from "../eventually.ts";
import { type KubeObject, readObject, readObjects } from "./api-reader.ts";

export type { KubeObject } from "./api-reader.ts";

export interface Condition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
}

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command to its end. A non-zero exit code is returned, and not thrown. */
export function run(command: string, args: readonly string[], input?: string): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = execFile(command, args, { maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error && typeof error.code !== "number") reject(error);
      else resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout, stderr });
    });
    child.stdin?.end(input ?? "");
  });
}

/** Runs kubectl in one namespace. */
export class Kubectl {
  readonly namespace: string;

  constructor(namespace: string) {
    this.namespace = namespace;
  }

  try(...args: string[]): Promise<Ran> {
    return run("kubectl", ["-n", this.namespace, ...args]);
  }

  /** @throws Error with the output of kubectl if it fails. */
  async do(...args: string[]): Promise<string> {
    const ran = await this.try(...args);
    if (ran.code !== 0)
      throw new Error(`kubectl ${args.join(" ")}: ${ran.stderr.trim() || ran.stdout.trim()}`);
    return ran.stdout;
  }

  async apply(...objects: object[]): Promise<string> {
    const ran = await this.tryApply(...objects);
    if (ran.code !== 0) throw new Error(`kubectl apply: ${ran.stderr.trim()}`);
    return ran.stdout;
  }

  tryApply(...objects: object[]): Promise<Ran> {
    const text = objects.map((o) => stringify(o)).join("---\n");
    return run("kubectl", ["-n", this.namespace, "apply", "-f", "-"], text);
  }

  get(kind: string, name: string): Promise<KubeObject | undefined> {
    return readObject(kind, this.namespace, name);
  }

  /** Lists objects. `kinds` is one kind, or several kinds separated by commas. */
  list(kinds: string, selector?: string): Promise<KubeObject[]> {
    return readObjects(kinds, this.namespace, selector);
  }

  /** Runs a program in a pod, and returns its output. */
  exec(pod: string, ...command: string[]): Promise<string> {
    return this.do("exec", pod, "--", ...command);
  }

  /** Runs a program in a pod in the background. `stop` ends it, and `output` returns its output so far. */
  background(pod: string, ...command: string[]) {
    const child = spawn("kubectl", ["-n", this.namespace, "exec", pod, "--", ...command]);
    let output = "";
    child.stdout.on("data", (piece: Buffer) => {
      output += piece.toString();
    });
    child.stderr.on("data", (piece: Buffer) => {
      output += piece.toString();
    });
    const ended = new Promise<string>((resolve) => child.once("close", () => resolve(output)));
    return { ended, output: () => output, stop: () => child.kill() };
  }
}

export function condition(object: KubeObject | undefined, type: string): Condition | undefined {
  return (object?.status?.conditions as Condition[] | undefined)?.find((c) => c.type === type);
}

/** Values of the chart. */
export type Values = { readonly [name: string]: unknown };

const releaseName = "tts-operator";
const presentChart = "charts/tts-operator";

/** The Helm release of the operator, which the setup of the suite installed. */
export class Release {
  /** Runs kubectl in the namespace of the release. */
  readonly system = new Kubectl("svc-tts-system");

  async values(): Promise<Values> {
    return JSON.parse(await this.#helm(["get", "values", releaseName, "--output", "json"])) as Values;
  }

  /** Upgrades the release. The flags, such as `--reset-then-reuse-values` and `--set`, select the values. */
  async upgrade(...flags: string[]): Promise<void> {
    await this.#helm(["upgrade", releaseName, presentChart, ...waiting, ...flags]);
  }

  /** Upgrades the release with exactly these values. */
  async upgradeTo(values: Values, chart = presentChart): Promise<void> {
    const flags = ["--reset-values", "--values", "-"];
    await this.#helm(["upgrade", releaseName, chart, ...waiting, ...flags], JSON.stringify(values));
  }

  /** Installs or upgrades the release with exactly these values. */
  async restore(values: Values): Promise<void> {
    const flags = ["--install", "--reset-values", "--values", "-"];
    await this.#helm(["upgrade", releaseName, presentChart, ...waiting, ...flags], JSON.stringify(values));
  }

  /** Rolls the release back to its previous revision. */
  async rollback(): Promise<void> {
    await this.#helm(["rollback", releaseName, ...waiting]);
  }

  async uninstall(): Promise<void> {
    await this.#helm(["uninstall", releaseName, ...waiting]);
    await eventually("the operator has no pods", async () => (await this.operatorPods()).length === 0);
  }

  async install(values: Values): Promise<void> {
    await this.#helm(
      ["install", releaseName, presentChart, "--values", "-", ...waiting],
      JSON.stringify(values),
    );
  }

  /** Runs `helm test`. Returns its output, including the log of a failed test pod. */
  test(): Promise<string> {
    return this.#helm(["test", releaseName, "--timeout", "300s"]);
  }

  operatorPods(): Promise<KubeObject[]> {
    return this.system.list(
      "pods",
      `app.kubernetes.io/name=${releaseName},app.kubernetes.io/component=operator`,
    );
  }

  /** Waits until a single operator pod exists that is not in `before`. */
  async replaced(before: readonly KubeObject[]): Promise<void> {
    const old = before.map(({ metadata }) => metadata.name);
    await eventually("only a new operator pod exists", async () => {
      const now = (await this.operatorPods()).map((pod) => pod.metadata.name);
      return now.length === 1 && now.every((pod) => !old.includes(pod));
    });
  }

  async #helm(args: string[], input?: string): Promise<string> {
    const ran = await run("helm", ["-n", this.system.namespace, ...args], input);
    if (ran.code !== 0) throw new Error(`helm ${args.join(" ")}: ${ran.stderr.trim()}`);
    return ran.stdout + (args[0] === "test" ? ran.stderr : "");
  }
}

const waiting = ["--wait", "--timeout", "300s"];
