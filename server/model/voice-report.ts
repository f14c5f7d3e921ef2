import { type ModelId, type ModelKind, modelsOfKind } from "../../config/contract/models.ts";
import { voices as builtInVoices, type ListedVoice } from "../../config/contract/voices.ts";
import type { Engines } from "../engine/engines.ts";
import type { MountedModel, MountProblem } from "../engine/neural/mounted-voices.ts";

interface ReportedVoice extends ListedVoice {
  /** The value of the header `X-Voice-Engine`. */
  readonly engine: string | undefined;
  /**
   * The built-in voices that this voice replaces in all models. Only API tiers of earlier versions read this
   * field.
   */
  readonly replaces?: readonly string[];
}

/** The engine of a built-in voice in a model. */
interface BuiltInSpeaker {
  readonly id: string;
  readonly model: ModelId;
  /** The value of the header `X-Voice-Engine`. */
  readonly engine: string;
  readonly license: string;
}

/**
 * The response of `GET /voices`: the voices that API tiers add to their catalogue, the engines of the
 * built-in voices, and the problems that an administrator has to solve.
 */
export interface VoiceReport {
  readonly voices: readonly ReportedVoice[];
  readonly builtIn: readonly BuiltInSpeaker[];
  readonly models: readonly MountedModel[];
  readonly problems: readonly MountProblem[];
}

/**
 * Creates the response of `GET /voices`.
 * @param engines undefined until the engines are started.
 */
export function reportVoices(engines: Engines | undefined, tier: ModelKind): VoiceReport {
  const mounted = engines?.mounted;
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
    builtIn: engines ? builtInSpeakers(engines, tier) : [],
    models: mounted?.models() ?? [],
    problems: mounted?.problems() ?? [],
  };
}

function builtInSpeakers(engines: Engines, tier: ModelKind): BuiltInSpeaker[] {
  const ofTier = modelsOfKind(tier);
  return builtInVoices.flatMap((voice) =>
    voice.models
      .filter((model) => ofTier.includes(model))
      .flatMap((model) => {
        const speaker = engines.describe(voice, model);
        return speaker ? [{ id: voice.id, model, ...speaker }] : [];
      }),
  );
}
