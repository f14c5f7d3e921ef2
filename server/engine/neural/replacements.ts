import type { ModelId } from "../../../config/contract/models.ts";
import { findVoice } from "../../../config/contract/voices.ts";
import { VoiceProblem } from "./manifest.ts";
import type { MountedVoice } from "./package.ts";

/**
 * Returns whether a mounted voice replaces a built-in voice in a model.
 * @param selected the models in which the deployment selects the voices of `mayReplace`.
 */
export function replacesIn(
  voice: Pick<MountedVoice, "replaces" | "mayReplace">,
  builtInId: string,
  model: ModelId,
  selected: readonly ModelId[],
): boolean {
  const isServed = findVoice(builtInId)?.models.includes(model) === true;
  if (!isServed) return false;
  return (
    voice.replaces.includes(builtInId) || (voice.mayReplace.includes(builtInId) && selected.includes(model))
  );
}

/**
 * Checks the replacements of voices. `replaces` applies to all models of a built-in voice, so that a client
 * gets the same voice in every model. `mayReplace` applies only to the models that the deployment selects.
 * @throws VoiceProblem that names the field.
 */
export function checkReplacements(source: { readonly file: string }, voices: readonly MountedVoice[]): void {
  const replaced = new Set<string>();
  for (const [i, voice] of voices.entries()) {
    for (const field of ["replaces", "mayReplace"] as const) {
      for (const [j, id] of voice[field].entries()) {
        const problem = replaced.has(id)
          ? "is also replaced by another voice of this manifest; remove one of the two"
          : problemWith(id, voice, field);
        replaced.add(id);
        if (!problem) continue;
        throw new VoiceProblem(
          { file: source.file, field: `/voices/${i}/${field}/${j}` },
          `${id} ${problem}`,
        );
      }
    }
  }
}

function problemWith(id: string, voice: MountedVoice, field: "replaces" | "mayReplace"): string | undefined {
  const builtIn = findVoice(id);
  if (!builtIn) return "is not a built-in voice";
  if (builtIn.language !== voice.language)
    return `has language ${builtIn.language}, and this voice has ${voice.language}; the languages must be equal`;
  if (field === "mayReplace") return undefined;
  const missing = builtIn.models.filter((model) => !voice.models.includes(model));
  return missing.length > 0
    ? `is also a voice of ${missing.join(" and ")}, and this voice is not; add the models to this voice`
    : undefined;
}
