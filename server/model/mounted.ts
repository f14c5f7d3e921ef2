import type { ListedVoice } from "../../config/contract/voices.ts";
import type { MountedModel, MountedVoices, MountProblem } from "../engine/neural/mounted-voices.ts";

interface ToldVoice extends ListedVoice {
  /** What speaks it, as `X-Voice-Engine` names it. */
  readonly engine: string | undefined;
  /** Built-in voices that it speaks for. */
  readonly replaces?: readonly string[];
}

/** Answer of `GET /voices`: what API tiers add to their catalogue, and what an administrator has to mend. */
export interface MountedList {
  readonly voices: readonly ToldVoice[];
  readonly models: readonly MountedModel[];
  readonly problems: readonly MountProblem[];
}

export function listMounted(mounted: MountedVoices | undefined): MountedList {
  const voices = mounted?.voices() ?? [];
  return {
    voices: voices.map(({ id, models, language, gender, license, replaces }) => ({
      ...(replaces.length > 0 && { replaces }),
      engine: mounted?.engineOf(id),
      id,
      models,
      language,
      gender,
      license,
    })),
    models: mounted?.models() ?? [],
    problems: mounted?.problems() ?? [],
  };
}
