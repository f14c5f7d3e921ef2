/** Runs the programs of a release: cosign, crane, helm and syft. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const execute = promisify(execFile);
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

export type ProgramName = "cosign" | "crane" | "helm" | "syft";

export interface Programs {
  /** Runs a program and returns its standard output. Throws with its standard error if it fails. */
  readonly run: (program: ProgramName, words: readonly string[]) => Promise<string>;
}

/**
 * @param folder the folder that `programs.sh` prints
 * @param environment the variables of the programs, such as COSIGN_PASSWORD and the credentials of a registry
 */
export function programsIn(folder: string, environment: NodeJS.ProcessEnv): Programs {
  return {
    run: async (program, words) => {
      const options = { env: environment, maxBuffer: MAX_OUTPUT_BYTES };
      try {
        return (await execute(join(folder, program), words, options)).stdout;
      } catch (error) {
        const { stderr = "" } = error as { stderr?: string };
        throw new Error(`${program} ${words[0]} failed: ${stderr.trim().split("\n").slice(-5).join("\n")}`, {
          cause: error,
        });
      }
    },
  };
}
