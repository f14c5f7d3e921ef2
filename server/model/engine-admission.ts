import { type Clock, systemClock } from "../../lib/clock.ts";
import type { VoiceEngine } from "../engine/engines.ts";
import type { Engine } from "../engine/runtime/engine.ts";
import { Admission, type AdmissionLimits } from "./admission.ts";

/**
 * Admission to mounted models. Each of them serves as many streams at once as its measured speed keeps free of gaps,
 * which is usually far below the limit of the tier and follows the current speed.
 */
export class EngineAdmission {
  readonly #byEngine = new WeakMap<Engine, Admission>();
  readonly #deadlineMs: number;
  readonly #clock: Clock;

  /** @param deadlineMs longest wait for a slot. */
  constructor(deadlineMs: number, clock: Clock = systemClock) {
    this.#deadlineMs = deadlineMs;
    this.#clock = clock;
  }

  /** Undefined for an engine that only the limit of the tier applies to. */
  of({ engine, voice }: Pick<VoiceEngine, "engine" | "voice">): Admission | undefined {
    return voice.kind === "neural" ? this.ofMounted(engine) : undefined;
  }

  /** Undefined if its speed is unknown. */
  ofMounted(engine: Engine): Admission | undefined {
    const { realTimeStreams } = engine;
    if (realTimeStreams === undefined) return undefined;
    const known = this.#byEngine.get(engine);
    if (known) return known;
    const limits: AdmissionLimits = {
      get maxStreams() {
        return engine.realTimeStreams ?? realTimeStreams;
      },
      get maxQueued() {
        return this.maxStreams;
      },
      deadlineMs: this.#deadlineMs,
    };
    const admission = new Admission(limits, this.#clock);
    this.#byEngine.set(engine, admission);
    return admission;
  }

  /** Whether a stream can start at once. */
  hasRoom(speaker: Pick<VoiceEngine, "engine" | "voice">): boolean {
    const admission = this.of(speaker);
    return !admission || admission.speaking < admission.limits.maxStreams;
  }
}
