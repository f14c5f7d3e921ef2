import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "../../..");
const execute = promisify(execFile);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "svc-tts-house-"));
  for (const file of ["package.json", "biome.json", "knip.json", "tsconfig.json"]) {
    await cp(join(root, file), join(folder, file));
  }
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function put(path: string, text: string): Promise<void> {
  await mkdir(join(folder, dirname(path)), { recursive: true });
  await writeFile(join(folder, path), text);
}

/** Runs a tool of `make check`. Returns its output, and whether it succeeded. */
async function runTool(tool: string, ...args: string[]): Promise<{ isClean: boolean; output: string }> {
  const program = join(root, "node_modules/.bin", tool);
  try {
    const { stdout, stderr } = await execute(program, args, { cwd: folder });
    return { isClean: true, output: stdout + stderr };
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    return { isClean: false, output: stdout + stderr };
  }
}

const biome = () => runTool("biome", "check", "--error-on-warnings", "--vcs-enabled=false", ".");

describe("make check", () => {
  it.each([
    [
      "a promise that is not awaited",
      "export async function save(): Promise<void> {\n  await Promise.resolve();\n}\nsave();\n",
      "noFloatingPromises",
    ],
    [
      "a promise that is used as a condition",
      "export async function ready(): Promise<boolean> {\n  return await Promise.resolve(true);\n}\nexport const text = ready() ? 1 : 2;\n",
      "noMisusedPromises",
    ],
    ["an empty catch block", "try {\n  JSON.parse('');\n} catch {}\n", "noEmptyBlockStatements"],
    ["the type any", "export const a: any = 1;\n", "noExplicitAny"],
    [
      "a non-null assertion",
      "export const a = (b: string | undefined) => b!.length;\n",
      "noNonNullAssertion",
    ],
  ])("refuses %s, by Biome", async (_what, text, rule) => {
    await put("server/main.ts", text);
    const { isClean, output } = await biome();
    expect(output).toContain(rule);
    expect(isClean).toBe(false);
  });

  it("refuses an enum, by TypeScript", async () => {
    await put("server/main.ts", "export enum Tier {\n  Mist,\n}\n");
    const { isClean, output } = await runTool("tsc", "-p", ".");
    expect(output).toContain("erasableSyntaxOnly");
    expect(isClean).toBe(false);
  });

  it("refuses an export without an import, and an unreachable file, by knip", async () => {
    await put("server/main.ts", 'import { used } from "./part.ts";\n\nconsole.log(used);\n');
    await put("server/part.ts", "export const used = 1;\nexport const forgotten = 2;\n");
    await put("server/lonely.ts", "export const alone = 1;\n");
    const { isClean, output } = await runTool("knip", "--include", "files,exports,types");
    expect(output).toMatch(/forgotten .*server\/part\.ts/);
    expect(output).toContain("server/lonely.ts");
    expect(output).not.toMatch(/^used /m);
    expect(isClean).toBe(false);
  });
});
