import type { ModelId } from "../../../config/contract/models.ts";
import { findVoice } from "../../../config/contract/voices.ts";
import { VoiceProblem } from "./manifest.ts";
import type { MountedVoice } from "./package.ts";

/**
 * Whether a mounted voice speaks for a built-in voice in a model.
 * @param asked models in which the deployment asks for `mayReplace`.
 */
export function replacesIn(
  voice: Pick<MountedVoice, "replaces" | "mayReplace">,
  builtInId: string,
  model: ModelId,
  asked: readonly ModelId[],
): boolean {
  const speaks = findVoice(builtInId)?.models.includes(model) === true;
  if (!speaks) return false;
  return (
    voice.replaces.includes(builtInId) || (voice.mayReplace.includes(builtInId) && asked.includes(model))
  );
}

/**
 * `replaces` holds for all models of a built-in voice: a client must not get another voice with another model.
 * Only the deployment can divide them, with `mayReplace`.
 * @throws VoiceProblem that names the field.
 */
export function checkReplacements(source: { readonly file: string }, voices: readonly MountedVoice[]): void {
  const seen = new Set<string>();
  for (const [i, voice] of voices.entries()) {
    for (const field of ["replaces", "mayReplace"] as const) {
      for (const [j, id] of voice[field].entries()) {
        const wrong = seen.has(id)
          ? "is replaced by another voice of this manifest"
          : problemWith(id, voice, field);
        seen.add(id);
        if (!wrong) continue;
        throw new VoiceProblem({ file: source.file, field: `/voices/${i}/${field}/${j}` }, `${id} ${wrong}`);
      }
    }
  }
}

function problemWith(id: string, voice: MountedVoice, field: "replaces" | "mayReplace"): string | undefined {
  const builtIn = findVoice(id);
  if (!builtIn) return "is no built-in voice";
  if (builtIn.language !== voice.language)
    return `speaks ${builtIn.language}, and this voice ${voice.language}`;
  if (field === "mayReplace") return undefined;
  const missing = builtIn.models.filter((model) => !voice.models.includes(model));
  return missing.length > 0
    ? `also speaks with ${missing.join(" and ")}, and this voice does not`
    : undefined;
}
