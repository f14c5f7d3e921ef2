/** Tests rules of supply-chain security on the workflows and the updates of dependencies. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

interface Job {
  readonly needs?: readonly string[];
  readonly permissions?: Readonly<Record<string, string>>;
  readonly strategy?: { readonly matrix: { readonly include: readonly Record<string, string>[] } };
  readonly steps: readonly {
    readonly uses?: string;
    readonly run?: string;
    readonly with?: Record<string, unknown>;
  }[];
}
interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

const root = join(import.meta.dirname, "../../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const workflow = parse(read(".github/workflows/release.yml")) as Workflow;
const steps = Object.values(workflow.jobs).flatMap((job) => job.steps);

describe("the workflow of a release", () => {
  it("pins every action to a commit, and states its version", () => {
    const uses = read(".github/workflows/release.yml").match(/uses: .*/g) ?? [];
    expect(uses.length).toBeGreaterThan(10);
    expect(uses.filter((line) => !/^uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line))).toEqual([]);
  });

  it("writes only in the job that publishes, after all other jobs", () => {
    expect(workflow.permissions).toEqual({ contents: "read" });
    const { publish, ...others } = workflow.jobs;
    expect(Object.values(others).map(({ permissions }) => permissions)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(publish?.needs?.toSorted()).toEqual(Object.keys(others).toSorted());
    expect(publish?.permissions).toEqual({ contents: "write", packages: "write", "id-token": "write" });
  });

  it("stores no token in the checkout, and inserts no expression into a script", () => {
    const checkouts = steps.filter(({ uses }) => uses?.startsWith("actions/checkout@"));
    expect(checkouts.map((step) => step.with?.["persist-credentials"])).toEqual(checkouts.map(() => false));
    expect(steps.filter(({ run }) => run?.includes("${{"))).toEqual([]);
  });

  it("fails if a command in a script fails", () => {
    // The shell ignores the status of a substitution in the list of a loop or in the words of another command.
    const inWords = /^(?!\s*\w+=\$\().*[^=]\$\((?!\()/m;
    expect(steps.filter(({ run = "" }) => inWords.test(run)).map(({ run }) => run)).toEqual([]);
  });

  it("tests the oldest supported version of Kubernetes and newer ones, by the digest of the node's image", () => {
    const nodes = workflow.jobs.kubernetes?.strategy?.matrix.include.map(({ node = "" }) => node) ?? [];
    expect(nodes.filter((node) => !/^kindest\/node:v1\.\d+\.\d+@sha256:[0-9a-f]{64}$/.test(node))).toEqual(
      [],
    );
    const minors = nodes.map((node) => Number(/v1\.(\d+)/.exec(node)?.[1]));
    const oldest = />=1\.(\d+)\.0/.exec(read("charts/tts-operator/Chart.yaml"))?.[1];
    expect(Math.min(...minors)).toBe(Number(oldest));
    expect(minors).toContain(Number(/KUBERNETES=v1\.(\d+)/.exec(read("test/cluster/tools.sh"))?.[1]));
  });

  it("runs targets that the Makefile has", () => {
    const targets = steps.flatMap(({ run = "" }) => [
      ...(/\bmake ([a-z -]+)/.exec(run)?.[1]?.trim().split(" ") ?? []),
    ]);
    const makefile = read("Makefile");
    expect(targets).toEqual(
      expect.arrayContaining(["check", "test-release", "release-images", "release-publish"]),
    );
    expect(targets.filter((target) => !makefile.includes(`\n${target}:`))).toEqual([]);
  });
});

describe("the updates of dependencies", () => {
  const updates = (
    parse(read(".github/dependabot.yml")) as {
      updates: {
        "package-ecosystem": string;
        directories?: string[];
        cooldown: { "default-days": number };
      }[];
    }
  ).updates;

  it("are at least seven days old", () => {
    expect(updates.filter(({ cooldown }) => !(cooldown["default-days"] >= 7))).toEqual([]);
  });

  it("include every Go module of the repository", () => {
    const modules = globSync("{test,tools}/**/go.mod", { cwd: root, exclude: ["**/node_modules/**"] });
    const listed = updates.flatMap(({ directories = [] }) => directories);
    const missing = modules
      .map((path) => `/${path.replace("/go.mod", "")}`)
      .filter((path) => !listed.includes(path));
    expect(missing).toEqual([]);
  });
});
