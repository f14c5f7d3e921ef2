/** kubectl as a person uses it, for tests against a real cluster (`KUBECONFIG` says which). */
import { execFile, spawn } from "node:child_process";
import { stringify } from "yaml";
import { readObject, readObjects } from "./api-reader.ts";
import type { KubeObject } from "./kube-object.ts";

export type { KubeObject } from "./kube-object.ts";

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

/** Runs a command to its end; never throws for an exit code. */
export function run(command: string, args: readonly string[], input?: string): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = execFile(command, args, { maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error && typeof error.code !== "number") reject(error);
      else resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout, stderr });
    });
    child.stdin?.end(input ?? "");
  });
}

/** kubectl in one namespace. */
export class Kubectl {
  readonly namespace: string;

  constructor(namespace: string) {
    this.namespace = namespace;
  }

  try(...args: string[]): Promise<Ran> {
    return run("kubectl", ["-n", this.namespace, ...args]);
  }

  /** @throws Error with what kubectl printed, when it fails. */
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

  /** @param kinds one kind, or several with commas between them. */
  list(kinds: string, selector?: string): Promise<KubeObject[]> {
    return readObjects(kinds, this.namespace, selector);
  }

  /** Runs a program in a pod and answers what it printed. */
  exec(pod: string, ...command: string[]): Promise<string> {
    return this.do("exec", pod, "--", ...command);
  }

  /** A long-running program in a pod; `stop` ends it, `output` is all that it printed. */
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
