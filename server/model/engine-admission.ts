import { type Clock, systemClock } from "../../lib/clock.ts";
import type { VoiceEngine } from "../engine/engines.ts";
import type { Engine } from "../engine/runtime/engine.ts";
import { Admission, type AdmissionLimits } from "./admission.ts";

/**
 * The admission of streams to mounted models. Each model serves as many concurrent streams as its measured
 * speed allows without gaps. This number is usually far below the limit of the tier and follows the current
 * speed.
 */
export class EngineAdmission {
  readonly #byEngine = new WeakMap<Engine, Admission>();
  readonly #deadlineMs: number;
  readonly #clock: Clock;

  /**
   * Creates the admission of all mounted models.
   * @param deadlineMs the longest wait for a slot.
   */
  constructor(deadlineMs: number, clock: Clock = systemClock) {
    this.#deadlineMs = deadlineMs;
    this.#clock = clock;
  }

  /** Returns the admission of a speaker's engine, or undefined if only the limit of the tier applies. */
  of({ engine, voice }: Pick<VoiceEngine, "engine" | "voice">): Admission | undefined {
    return voice.kind === "neural" ? this.ofMounted(engine) : undefined;
  }

  /** Returns the admission of a mounted model's engine, or undefined if the engine's speed is unknown. */
  ofMounted(engine: Engine): Admission | undefined {
    const { realTimeStreams } = engine;
    if (realTimeStreams === undefined) return undefined;
    const existing = this.#byEngine.get(engine);
    if (existing) return existing;
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

  /** Returns whether a stream can start immediately. */
  hasRoom(speaker: Pick<VoiceEngine, "engine" | "voice">): boolean {
    const admission = this.of(speaker);
    return !admission || admission.speaking < admission.limits.maxStreams;
  }
}
