import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder for PATH that contains only a simulated `nvidia-smi`. */
export interface NvidiaSmi extends Disposable {
  readonly folder: string;
  /** Returns the process ids of all runs of the program. */
  runs(): number[];
}

/**
 * Creates a simulated `nvidia-smi`. It prints the output of `--format=csv,noheader,nounits`: a line for each
 * GPU, and again after each `-l` seconds.
 *
 * @param loads the load of each GPU, such as `37` or `[N/A]`. If the list is empty, the folder has no
 * program.
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

/** The code of the simulated program. `standInNvidiaSmi` writes its source text to the program file. */
function printLoads({ loads, runs }: Script): void {
  const { appendFileSync } = process.getBuiltinModule("node:fs");
  appendFileSync(runs, `${process.pid}\n`);
  const fields =
    process.argv
      .find((argument) => argument.startsWith("--query-gpu="))
      ?.slice(12)
      .split(",") ?? [];
  if (!process.argv.includes("--format=csv,noheader,nounits")) process.exit(2);
  const print = () => {
    loads.forEach((load, gpu) => {
      const values: Record<string, unknown> = { "utilization.gpu": load, index: gpu };
      console.log(fields.map((field) => values[field]).join(", "));
    });
  };
  print();
  setInterval(print, 1_000 * Number(process.argv[process.argv.indexOf("-l") + 1]));
}
