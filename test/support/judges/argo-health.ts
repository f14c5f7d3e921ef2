import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { type Verdict, verdictsOf } from "./judges.ts";

const config = join(import.meta.dirname, "../../../config/argocd/argocd-cm.yaml");

/** Returns the result of Argo CD's health check of this kind for each object, in the order of the objects. */
export async function argoVerdicts(kind: string, objects: readonly object[]): Promise<Verdict[]> {
  const { data } = parse(await readFile(config, "utf8")) as { data: Record<string, string> };
  const script = data[`resource.customizations.health.tts.svc.dev_${kind}`];
  if (script === undefined) throw new Error(`${config} has no health check of ${kind}`);
  const folder = await mkdtemp(join(tmpdir(), "svc-tts-argo-"));
  try {
    await writeFile(join(folder, "health.lua"), script);
    return await verdictsOf("argohealth", [join(folder, "health.lua")], objects);
  } finally {
    await rm(folder, { recursive: true });
  }
}
