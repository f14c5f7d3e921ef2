import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder for PATH with what stands in for `nvidia-smi`, and nothing else. */
export interface NvidiaSmi extends Disposable {
  readonly folder: string;
  /** Process ids of its runs so far. */
  runs(): number[];
}

/**
 * Prints what the real one prints for `--format=csv,noheader,nounits`: a line a GPU, then again after each `-l` seconds.
 * @param loads of each GPU, as `37` or `[N/A]`; none for a folder without the program.
 */
export function standInNvidiaSmi(loads: readonly string[]): NvidiaSmi {
  const folder = mkdtempSync(join(tmpdir(), "svc-tts-nvidia-smi-"));
  const runs = join(folder, "runs");
  if (loads.length > 0) {
    const program = join(folder, "nvidia-smi");
    writeFileSync(
      program,
      `#!${process.execPath}\n(${String(printLoads)})(${JSON.stringify({ loads, runs })});\n`,
    );
    chmodSync(program, 0o755);
  }
  return {
    folder,
    runs: () => (existsSync(runs) ? readFileSync(runs, "utf8").trim().split("\n").map(Number) : []),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

interface Script {
  readonly loads: readonly string[];
  readonly runs: string;
}

/** Written into the program as it stands here. */
function printLoads({ loads, runs }: Script): void {
  const { appendFileSync } = process.getBuiltinModule("node:fs");
  appendFileSync(runs, `${process.pid}\n`);
  const asked =
    process.argv
      .find((argument) => argument.startsWith("--query-gpu="))
      ?.slice(12)
      .split(",") ?? [];
  if (!process.argv.includes("--format=csv,noheader,nounits")) process.exit(2);
  const print = () => {
    loads.forEach((load, gpu) => {
      const values: Record<string, unknown> = { "utilization.gpu": load, index: gpu };
      console.log(asked.map((field) => values[field]).join(", "));
    });
  };
  print();
  setInterval(print, 1_000 * Number(process.argv[process.argv.indexOf("-l") + 1]));
}
