import type { ListedVoice } from "../../config/contract/voices.ts";
import type { MountedModel, MountedVoices, MountProblem } from "../engine/neural/mounted-voices.ts";

interface ToldVoice extends ListedVoice {
  /** Value of `X-Voice-Engine`. */
  readonly engine: string | undefined;
  /** Built-in voices that this voice replaces. */
  readonly replaces?: readonly string[];
}

/**
 * Response of `GET /voices`: voices that API tiers add to their catalogue, and problems that an administrator
 * has to solve.
 */
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
