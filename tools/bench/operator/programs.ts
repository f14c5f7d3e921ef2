/** Prepares the programs of both operators, and the license key that both trust. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Issuer, licenseIssuer } from "../../../test/support/server/licenses.ts";
import type { Program } from "./subject.ts";

/** Node's options that have the effect of the image's options under the chart's memory limit of 256Mi. */
const asInPod = "--max-semi-space-size=4 --max-old-space-size=128";
const main = join(import.meta.dirname, "../../../operator/main.ts");

interface Programs {
  readonly issuer: Issuer;
  readonly ours: () => Program;
  readonly twin: (path: string) => Program;
}

/** Writes the license keys to `directory`, and returns both programs. The caller removes the directory. */
export async function operatorPrograms(directory: string): Promise<Programs> {
  const issuer = await licenseIssuer();
  const keysFile = join(directory, "jwks.json");
  writeFileSync(keysFile, JSON.stringify(issuer.keys));
  const environment = {
    TTS_SERVER_IMAGE: "registry.example/svc-tts/server:0.1.0",
    TTS_LICENSE_KEYS_FILE: keysFile,
  };
  return {
    issuer,
    ours: () => ({
      name: "ours",
      command: [process.execPath, main, "run"],
      environment: { ...environment, ...compiled(join(directory, "compiled")) },
    }),
    twin: (path) => ({ name: "twin", command: [path], environment }),
  };
}

/**
 * Compiles the modules of the operator into a cache, as in the image. Returns the environment for this cache.
 */
function compiled(cache: string): Record<string, string> {
  const environment = { NODE_ENV: "production", NODE_OPTIONS: asInPod, NODE_COMPILE_CACHE: cache };
  execFileSync(process.execPath, [main, "--version"], { env: { ...process.env, ...environment } });
  return environment;
}
