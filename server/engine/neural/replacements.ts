import { findVoice } from "../../../config/contract/voices.ts";
import { VoiceProblem } from "./manifest.ts";
import type { MountedVoice } from "./package.ts";

/**
 * A mounted voice may replace built-in voices of its language, but only for all of their models: a client
 * must not get another voice with another model.
 * @throws VoiceProblem that names the field.
 */
export function checkReplacements(source: { readonly file: string }, voices: readonly MountedVoice[]): void {
  const seen = new Set<string>();
  for (const [i, voice] of voices.entries()) {
    for (const [j, id] of voice.replaces.entries()) {
      const wrong = seen.has(id) ? "is replaced by another voice of this manifest" : problemWith(id, voice);
      seen.add(id);
      if (wrong)
        throw new VoiceProblem({ file: source.file, field: `/voices/${i}/replaces/${j}` }, `${id} ${wrong}`);
    }
  }
}

function problemWith(id: string, voice: MountedVoice): string | undefined {
  const builtIn = findVoice(id);
  if (!builtIn) return "is no built-in voice";
  if (builtIn.language !== voice.language)
    return `speaks ${builtIn.language}, and this voice ${voice.language}`;
  const missing = builtIn.models.filter((model) => !voice.models.includes(model));
  return missing.length > 0
    ? `also speaks with ${missing.join(" and ")}, and this voice does not`
    : undefined;
}
