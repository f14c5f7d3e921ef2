import { setImmediate as settled } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Utterance } from "../../../server/contract/speech.ts";
import type { Engine } from "../../../server/engine/runtime/engine.ts";
import { speak } from "../../../server/model/speak.ts";
import { planSpeech } from "../../../server/text/planning/plan.ts";

const rate = 1_000;
const secondsOfPhrase = 2;
const plain = { normalize: true, pauses: false, phonemes: false, inlineStretch: [], quickStart: false };

/** Returns an engine that records each phrase at its start, and generates its audio immediately. */
function recordingEngine({ worksAhead }: { readonly worksAhead: boolean }) {
  const started: Utterance[] = [];
  const engine: Engine = {
    name: "kokoro",
    rate,
    capacity: 1,
    restarts: 0,
    worksAhead,
    healthy: () => true,
    close: async () => undefined,
    async *speak(utterance, _signal, onWritten) {
      started.push(utterance);
      await settled();
      onWritten?.(secondsOfPhrase);
      yield { samples: new Int16Array(secondsOfPhrase * rate), rate, times: [] };
    },
  };
  return { engine, started };
}

function start(engine: Engine, text: string) {
  const voice = { kind: "neural", speaker: 0 } as const;
  const speaker = { engine, voice, release: () => undefined };
  const segments = planSpeech(text, { ...plain, language: "eng" });
  const maxPhraseSeconds = Number.POSITIVE_INFINITY;
  return speak({ segments, speaker, stretch: 1, maxPhraseSeconds }, new AbortController().signal);
}

const text = "One is here. Two is here. Three is here. Four is here.";

describe("the phrases of an engine that works ahead", () => {
  it("start one at a time, while the previous phrase plays", async () => {
    const { engine, started } = recordingEngine({ worksAhead: true });
    const frames = start(engine, text);
    await frames.next();
    for (let turn = 0; turn < 5; turn++) await settled();
    expect(started).toHaveLength(2);
    await frames.return();
  });

  it("are due when the earlier audio has been played", async () => {
    const { engine, started } = recordingEngine({ worksAhead: true });
    let seconds = 0;
    for await (const { samples } of start(engine, text)) seconds += samples.length / rate;
    expect(seconds).toBeCloseTo(4 * secondsOfPhrase + 3 * 0.35, 3);
    const due = started.map(({ dueAtMs = 0 }) => dueAtMs);
    expect(started.map(({ isFirst }) => isFirst)).toEqual([true, false, false, false]);
    for (const [i, dueAtMs] of due.entries()) {
      const before = due[i - 1];
      if (before !== undefined) expect(dueAtMs - before).toBeGreaterThan(secondsOfPhrase * 1000 - 300);
    }
  });

  it("start only after the previous phrase is consumed if the engine does not work ahead", async () => {
    const { engine, started } = recordingEngine({ worksAhead: false });
    const frames = start(engine, text);
    await frames.next();
    for (let turn = 0; turn < 5; turn++) await settled();
    expect(started).toHaveLength(1);
    await frames.return();
  });
});
