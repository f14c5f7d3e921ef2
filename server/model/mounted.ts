import type { ListedVoice } from "../../config/contract/voices.ts";
import type { MountedVoices, MountProblem } from "../engine/neural/mounted-voices.ts";

/** Answer of `GET /voices`: what API tiers add to their catalogue, and what an administrator has to mend. */
export interface MountedList {
  readonly voices: readonly ListedVoice[];
  readonly problems: readonly MountProblem[];
}

export function listMounted(mounted: MountedVoices | undefined): MountedList {
  const voices = mounted?.voices() ?? [];
  return {
    voices: voices.map(({ id, models, language, gender, license }) => ({
      id,
      models,
      language,
      gender,
      license,
    })),
    problems: mounted?.problems() ?? [],
  };
}
