import type { EngineVoice } from "../../config/contract/voices.ts";
import { Failure } from "../errors.ts";
import { type Engine, EngineMissing, type EngineOptions } from "./engine.ts";
import { openEspeak } from "./espeak/engine.ts";
import { openFlite } from "./flite/engine.ts";

/** The engine that speaks a voice here, and the voice as that engine knows it. */
export interface Speaker {
  readonly engine: Engine;
  readonly voice: EngineVoice;
}

/** The engines that this machine has. */
export class Engines {
  readonly #engines: ReadonlyMap<EngineVoice["kind"], Engine>;
  /** What to install, for each engine that is not here. */
  readonly missing: readonly string[];

  constructor(engines: ReadonlyMap<EngineVoice["kind"], Engine>, missing: readonly string[]) {
    this.#engines = engines;
    this.missing = missing;
  }

  static async open(options: EngineOptions): Promise<Engines> {
    const [flite, espeak] = await Promise.all([
      orMissing(openFlite(options)),
      orMissing(openEspeak(options)),
    ]);
    const engines = new Map<EngineVoice["kind"], Engine>();
    if (!(flite instanceof EngineMissing)) engines.set("flite", flite);
    if (!(espeak instanceof EngineMissing)) engines.set("espeak", espeak);
    const missing = [flite, espeak].filter((engine) => engine instanceof EngineMissing);
    for (const { message } of missing) options.log.warn({}, message);
    if (engines.size === 1 && engines.has("espeak")) {
      options.log.warn(
        {},
        "English is spoken by eSpeak NG, which is less natural, since Flite is not installed.",
      );
    }
    return new Engines(
      engines,
      missing.map(({ message }) => message),
    );
  }

  all(): Engine[] {
    return [...this.#engines.values()];
  }

  /** Something can speak, now or within its restart budget. */
  healthy(): boolean {
    return this.#engines.size > 0 && this.all().every((engine) => engine.healthy());
  }

  /** @throws Failure `model_unreachable` when the voice's engine is not installed. */
  speakerFor(voice: EngineVoice): Speaker {
    const own = this.#engines.get(voice.kind);
    if (own) return { engine: own, voice };
    const espeak = this.#engines.get("espeak");
    if (espeak && voice.kind === "flite") return { engine: espeak, voice: asEspeak(voice) };
    throw new Failure(
      "model_unreachable",
      "The engine of this voice is not installed on the server; its log says what to install.",
      { retryAfterSeconds: 60 },
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.all().map((engine) => engine.close()));
  }
}

const standIns = { awb: "en-gb-scotland", rms: "en-us", slt: "en-us+f3", kal16: "en-us+m3" } as const;

/** Where Flite is not installed eSpeak NG speaks English, at the same pitch and length. */
function asEspeak(voice: Extract<EngineVoice, { kind: "flite" }>): EngineVoice {
  return {
    kind: "espeak",
    voice: standIns[voice.voice],
    pitch: 50 * voice.pitch,
    stretch: voice.stretch,
  };
}

async function orMissing(opening: Promise<Engine>): Promise<Engine | EngineMissing> {
  try {
    return await opening;
  } catch (error) {
    if (error instanceof EngineMissing) return error;
    throw error;
  }
}
