/** Programs of others that judge our manifests, built from their Go modules on first use. */
import { execFile, spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";

const build = join(import.meta.dirname, "../judges/build.sh");

let folder: Promise<string> | undefined;

/** Path of a built program; minutes the first time. */
export async function judge(
  name: "kstatus" | "argohealth" | "kube-score" | "helm-unittest",
): Promise<string> {
  folder ??= promisify(execFile)(build, { timeout: 600_000 }).then(({ stdout }) => stdout.trim());
  return join(await folder, name);
}

export interface Verdict {
  readonly status: string;
  readonly message: string;
}

/** What the program makes of each object, in their order. */
export async function verdictsOf(
  program: "kstatus" | "argohealth",
  args: readonly string[],
  objects: readonly object[],
): Promise<Verdict[]> {
  const child = spawn(await judge(program), args, { stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.end(objects.map((object) => `${JSON.stringify(object)}\n`).join(""));
  const lines = (await text(child.stdout)).trimEnd().split("\n");
  if (lines.length !== objects.length)
    throw new Error(`${program} judged ${lines.length} of ${objects.length} objects`);
  return lines.map((line) => {
    const [status = "", message = ""] = line.split("\t");
    return { status, message };
  });
}
