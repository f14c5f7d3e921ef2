import { setImmediate as settled } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Utterance } from "../../../server/contract/speech.ts";
import type { Engine } from "../../../server/engine/runtime/engine.ts";
import { speak } from "../../../server/model/speak.ts";
import { planSpeech } from "../../../server/text/planning/plan.ts";

const rate = 1_000;
const secondsOfPhrase = 2;
const plain = { normalize: true, pauses: false, phonemes: false, inlineStretch: [], quickStart: false };

/** An engine that records each phrase as it begins, and makes it at once. */
function recordingEngine({ worksAhead }: { readonly worksAhead: boolean }) {
  const begun: Utterance[] = [];
  const engine: Engine = {
    name: "kokoro",
    rate,
    capacity: 1,
    restarts: 0,
    worksAhead,
    healthy: () => true,
    close: async () => undefined,
    async *speak(utterance, _signal, onWritten) {
      begun.push(utterance);
      await settled();
      onWritten?.(secondsOfPhrase);
      yield { samples: new Int16Array(secondsOfPhrase * rate), rate, times: [] };
    },
  };
  return { engine, begun };
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
  it("begin while the one before plays, one at a time", async () => {
    const { engine, begun } = recordingEngine({ worksAhead: true });
    const frames = start(engine, text);
    await frames.next();
    for (let turn = 0; turn < 5; turn++) await settled();
    expect(begun).toHaveLength(2);
    await frames.return();
  });

  it("are due when the audio before them has been played, also if it was not yet consumed", async () => {
    const { engine, begun } = recordingEngine({ worksAhead: true });
    let seconds = 0;
    for await (const { samples } of start(engine, text)) seconds += samples.length / rate;
    expect(seconds).toBeCloseTo(4 * secondsOfPhrase + 3 * 0.35, 3);
    const due = begun.map(({ dueAtMs = 0 }) => dueAtMs);
    expect(begun.map(({ isFirst }) => isFirst)).toEqual([true, false, false, false]);
    for (const [i, dueAtMs] of due.entries()) {
      const before = due[i - 1];
      if (before !== undefined) expect(dueAtMs - before).toBeGreaterThan(secondsOfPhrase * 1000 - 300);
    }
  });

  it("begin one after the other with other engines", async () => {
    const { engine, begun } = recordingEngine({ worksAhead: false });
    const frames = start(engine, text);
    await frames.next();
    for (let turn = 0; turn < 5; turn++) await settled();
    expect(begun).toHaveLength(1);
    await frames.return();
  });
});
