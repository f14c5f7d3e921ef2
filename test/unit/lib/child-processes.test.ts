import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { folderOfTests } from "../../support/folder.ts";

const file = join(import.meta.dirname, "../../../lib/child-processes.ts");
/** This program prints its compile cache, and the environment and compile cache of its child process. */
const program = `
  import { execFileSync } from "node:child_process";
  import { getCompileCacheDir } from "node:module";
  import { childEnvironment } from ${JSON.stringify(file)};
  const environment = childEnvironment();
  const script = "console.log(String(require('node:module').getCompileCacheDir()))";
  const cache = execFileSync(process.execPath, ["-e", script], { env: environment, encoding: "utf8" });
  console.log(JSON.stringify({ environment, own: String(getCompileCacheDir()), child: cache.trim() }));
`;

function runParent(env: Readonly<Record<string, string>>): unknown {
  const args = ["--input-type=module", "--eval", program];
  return JSON.parse(execFileSync(process.execPath, args, { env, encoding: "utf8" }));
}

describe("childEnvironment", () => {
  const folder = folderOfTests("child-processes");

  it("has the compile cache of the parent process and no other variable", () => {
    const result = runParent({ NODE_COMPILE_CACHE: folder, API_KEY: "secret" });
    const own = expect.stringMatching(new RegExp(`^${folder}/[^/]+$`));
    expect(result).toEqual({ environment: { NODE_COMPILE_CACHE: folder }, own, child: own });
  });

  it("is empty if the parent process has no compile cache", () => {
    const result = runParent({ API_KEY: "secret" });
    expect(result).toEqual({ environment: {}, own: "undefined", child: "undefined" });
  });
});
