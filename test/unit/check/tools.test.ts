import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "../../..");
const execute = promisify(execFile);

let house: string;
beforeEach(async () => {
  house = await mkdtemp(join(tmpdir(), "svc-tts-house-"));
  for (const file of ["package.json", "biome.json", "knip.json", "tsconfig.json"]) {
    await cp(join(root, file), join(house, file));
  }
  await symlink(join(root, "node_modules"), join(house, "node_modules"));
});
afterEach(() => rm(house, { recursive: true, force: true }));

async function put(path: string, text: string): Promise<void> {
  await mkdir(join(house, dirname(path)), { recursive: true });
  await writeFile(join(house, path), text);
}

/** The output of a tool of `make check`, and whether it succeeded. */
async function ask(tool: string, ...args: string[]): Promise<{ content: boolean; said: string }> {
  const program = join(root, "node_modules/.bin", tool);
  try {
    const { stdout, stderr } = await execute(program, args, { cwd: house });
    return { content: true, said: stdout + stderr };
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    return { content: false, said: stdout + stderr };
  }
}

const biome = () => ask("biome", "check", "--error-on-warnings", "--vcs-enabled=false", ".");

describe("make check", () => {
  it.each([
    [
      "a promise that is not awaited",
      "export async function save(): Promise<void> {\n  await Promise.resolve();\n}\nsave();\n",
      "noFloatingPromises",
    ],
    [
      "a promise taken for a condition",
      "export async function ready(): Promise<boolean> {\n  return await Promise.resolve(true);\n}\nexport const text = ready() ? 1 : 2;\n",
      "noMisusedPromises",
    ],
    ["a failure swallowed", "try {\n  JSON.parse('');\n} catch {}\n", "noEmptyBlockStatements"],
    ["a type that says nothing", "export const a: any = 1;\n", "noExplicitAny"],
    ["a null wished away", "export const a = (b: string | undefined) => b!.length;\n", "noNonNullAssertion"],
  ])("refuses %s, by Biome", async (_what, text, rule) => {
    await put("server/main.ts", text);
    const { content, said } = await biome();
    expect(said).toContain(rule);
    expect(content).toBe(false);
  });

  it("refuses an enum, by TypeScript", async () => {
    await put("server/main.ts", "export enum Tier {\n  Mist,\n}\n");
    const { content, said } = await ask("tsc", "-p", ".");
    expect(said).toContain("erasableSyntaxOnly");
    expect(content).toBe(false);
  });

  it("refuses an export without an import, and an unreachable file, by knip", async () => {
    await put("server/main.ts", 'import { used } from "./part.ts";\n\nconsole.log(used);\n');
    await put("server/part.ts", "export const used = 1;\nexport const forgotten = 2;\n");
    await put("server/lonely.ts", "export const alone = 1;\n");
    const { content, said } = await ask("knip", "--include", "files,exports,types");
    expect(said).toMatch(/forgotten .*server\/part\.ts/);
    expect(said).toContain("server/lonely.ts");
    expect(said).not.toMatch(/^used /m);
    expect(content).toBe(false);
  });
});
