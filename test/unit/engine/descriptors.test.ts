import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

it("a model tier without free file descriptors continues, and reports why its engines do not start", async () => {
  const program = fileURLToPath(new URL("../../support/engine-programs/main.ts", import.meta.url));
  const command = ["-c", 'ulimit -n 128; exec "$@"', "bash", process.execPath, program, "starved"];
  const { stdout } = await promisify(execFile)("bash", command);
  const [engine, vllm, server] = JSON.parse(stdout) as string[];
  expect(engine).toMatch(/EngineDied: The engine process could not be started: spawn .* EMFILE/);
  expect(vllm).toMatch(/it could not be started: spawn sh EMFILE/);
  expect(server).toMatch(
    /vLLM did not start 3 times in a row. Last reason: vLLM could not be started: .*EMFILE/,
  );
});
