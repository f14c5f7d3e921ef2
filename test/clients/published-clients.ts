import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Published clients, as `name==version`. A new version is tried by changing it here. */
export const livekitPackages = ["livekit-agents==1.8.9", "livekit-plugins-rime==1.8.9", "rime-api==0.4.0"];
export const pipecatPackages = ["pipecat-ai[rime]==1.14.0", "rime-api==0.4.0"];

/** `make test` tries some of the sockets, and `make test-clients` all of them and more. */
export const isComplete = process.env.CLIENTS === "all";

const page = readFileSync(join(import.meta.dirname, "../../docs/how-to/voice-agents.md"), "utf8");

/**
 * The Python of the documentation that imports the framework.
 * @throws Error where there is none, or the page installs other versions.
 */
export function exampleOf(framework: string, packages: readonly string[]): string {
  const missing = packages.find((name) => !page.includes(name));
  if (missing !== undefined) throw new Error(`the page does not install ${missing}`);
  const blocks = [...page.matchAll(/^```python\n(.*?)^```$/gms)].map(([, code = ""]) => code);
  const example = blocks.find((code) => code.includes(`from ${framework}.`));
  if (example === undefined) throw new Error(`the page has no example of ${framework}`);
  return example;
}
