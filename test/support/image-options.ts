import { readFileSync } from "node:fs";

/** What the server image starts Node with: memory is measured for those who run the image. */
export function imageNodeOptions(): string {
  const containerfile = readFileSync(new URL("../../Containerfile", import.meta.url), "utf8");
  const options = /^ENV NODE_OPTIONS=(.+)$/m.exec(containerfile)?.[1];
  if (options === undefined) throw new Error("Containerfile has no line ENV NODE_OPTIONS=…");
  return options;
}
