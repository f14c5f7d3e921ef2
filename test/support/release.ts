/** The release that the e2e suite's set-up installed, by helm as a person uses it. */
import { eventually } from "./eventually.ts";
import { Kubectl, type KubeObject, run } from "./real-cluster.ts";

/** What was set with `--set` and `--values`. */
export type Values = { readonly [name: string]: unknown };

const name = "tts-operator";
const presentChart = "charts/tts-operator";

export class Release {
  /** kubectl in the release's namespace. */
  readonly system = new Kubectl("svc-tts-system");

  async values(): Promise<Values> {
    return JSON.parse(await this.#helm(["get", "values", name, "--output", "json"])) as Values;
  }

  /** With flags as `--reset-then-reuse-values` and `--set`, which decide about the values. */
  async upgrade(...flags: string[]): Promise<void> {
    await this.#helm(["upgrade", name, presentChart, ...waiting, ...flags]);
  }

  /** With these values and no others. */
  async upgradeTo(values: Values, chart = presentChart): Promise<void> {
    const flags = ["--reset-values", "--values", "-"];
    await this.#helm(["upgrade", name, chart, ...waiting, ...flags], JSON.stringify(values));
  }

  /** To the revision before. */
  async rollback(): Promise<void> {
    await this.#helm(["rollback", name, ...waiting]);
  }

  async uninstall(): Promise<void> {
    await this.#helm(["uninstall", name, ...waiting]);
    await eventually("the operator's pods to be gone", async () => (await this.operatorPods()).length === 0);
  }

  async install(values: Values): Promise<void> {
    await this.#helm(["install", name, presentChart, "--values", "-", ...waiting], JSON.stringify(values));
  }

  /** `helm test`. @returns what it printed, a test pod's log included */
  test(): Promise<string> {
    return this.#helm(["test", name, "--timeout", "300s"]);
  }

  operatorPods(): Promise<KubeObject[]> {
    return this.system.list("pods", `app.kubernetes.io/name=${name},app.kubernetes.io/component=operator`);
  }

  /** Waits until the only operator pod is one that is not in `before`. */
  async replaced(before: readonly KubeObject[]): Promise<void> {
    const old = before.map(({ metadata }) => metadata.name);
    await eventually("the new operator pod alone", async () => {
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
