import { writeFile } from "node:fs/promises";
import { definitions } from "./definitions.ts";
import { referencePage } from "./reference.ts";
import { definitionHeader, toYaml } from "./yaml.ts";

/**
 * Writes `crds/*.yaml` and `docs/reference.md`. `make generate` runs it; `make verify` fails when a file
 * differs from its source.
 */

const repository = new URL("..", import.meta.url);
const kubectlApplyLimitBytes = 200_000;

function crdFile(definition: (typeof definitions)[number]): string {
  const text = `${definitionHeader(definition.spec.names.kind)}\n${toYaml(definition)}`;
  if (Buffer.byteLength(text) > kubectlApplyLimitBytes) {
    throw new Error(
      `${definition.metadata.name} exceeds ${kubectlApplyLimitBytes} bytes; kubectl apply would reject it.`,
    );
  }
  return text;
}

async function write(path: string, text: string): Promise<void> {
  await writeFile(new URL(path, repository), text);
  console.log(`wrote ${path} (${Buffer.byteLength(text)} bytes)`);
}

for (const definition of definitions)
  await write(`crds/${definition.spec.names.plural}.yaml`, crdFile(definition));
await write("docs/reference.md", referencePage(definitions));
