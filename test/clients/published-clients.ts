import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * The packages of the published clients, as `name==version`. To test another version, change the version
 * here.
 */
export const livekitPackages = ["livekit-agents==1.8.9", "livekit-plugins-rime==1.8.9", "rime-api==0.4.0"];
export const pipecatPackages = ["pipecat-ai[rime]==1.14.0", "rime-api==0.4.0"];

/** `make test` tests some of the sockets. `make test-clients` tests all of them, and more cases. */
export const isComplete = process.env.CLIENTS === "all";

const page = readFileSync(join(import.meta.dirname, "../../docs/how-to/voice-agents.md"), "utf8");

/**
 * Returns the first Python example of the documentation that imports the framework.
 * @throws Error if the page has no such example, or installs other versions of the packages
 */
export function exampleOf(framework: string, packages: readonly string[]): string {
  const missing = packages.find((name) => !page.includes(name));
  if (missing !== undefined) throw new Error(`docs/how-to/voice-agents.md does not install ${missing}`);
  const blocks = [...page.matchAll(/^```python\n(.*?)^```$/gms)].map(([, code = ""]) => code);
  const example = blocks.find((code) => code.includes(`from ${framework}.`));
  if (example === undefined)
    throw new Error(`docs/how-to/voice-agents.md has no Python example that imports ${framework}`);
  return example;
}
