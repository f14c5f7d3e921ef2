import { readFileSync } from "node:fs";

/** What the server image starts Node with: memory is measured for those who run the image. */
export function imageNodeOptions(): string {
  const containerfile = readFileSync(new URL("../../Containerfile", import.meta.url), "utf8");
  const stage = containerfile.split(/^FROM /m).find((text) => / AS server\n/.test(text)) ?? "";
  const options = /^ENV NODE_OPTIONS=(\S+)$/m.exec(stage)?.[1];
  if (options === undefined) throw new Error("Containerfile's stage server has no line ENV NODE_OPTIONS=…");
  return options;
}
