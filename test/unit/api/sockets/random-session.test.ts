import { expect, test } from "vitest";
import { clearModes } from "../../../../server/api/request/socket-options.ts";
import { segmentModes } from "../../../../server/api/sockets/segmentation.ts";
import { type SessionAction, TextSession } from "../../../../server/api/sockets/text-session.ts";
import { type SeededRandom, seededRandom } from "../../../support/seed.ts";
import { describeAction, ReferenceSession } from "../../../support/sockets/reference-session.ts";

/** The conformance test of specification 11.23 sets `SOCKET_STEPS` to 100000. */
const steps = Number(process.env.SOCKET_STEPS ?? 5000);
const limitMs = 30_000 + steps * 10;

const modes = segmentModes.flatMap((mode) => clearModes.map((clearMode) => ({ mode, clearMode })));

test.each(modes)(
  "TextSession in mode $mode with clear mode $clearMode acts like the reference for random events",
  (options) => {
    const random = seededRandom(`sockets ${options.mode} ${options.clearMode}`);
    let run = new Run(options.mode, options.clearMode);
    for (let step = 0; step < steps; step++) {
      if (run.reference.isClosed) run = new Run(options.mode, options.clearMode);
      run.step(random);
    }
  },
  limitMs,
);

const words =
  "Hello Dr. Smith, it is 2.5 ml, e.g. water etc. and milk... Really? Yes! 你好。再见。 Ok.".split(" ");
const contexts = [null, null, null, "a", "a", "b", "c"];
const markups = [{}, {}, {}, { phonemizeBetweenBrackets: true }, { inlineSpeedAlpha: "0.5" }];

/** One socket, simulated by both implementations, with the history of its events. */
class Run {
  readonly reference: ReferenceSession;
  readonly #session: TextSession;
  readonly #history: string[] = [];

  constructor(mode: (typeof segmentModes)[number], clearMode: (typeof clearModes)[number]) {
    this.reference = new ReferenceSession(mode, clearMode);
    this.#session = new TextSession({
      ...{ mode, clearMode, language: "eng", commas: false },
      ...{ longestText: Number.POSITIVE_INFINITY, longestBacklog: Number.POSITIVE_INFINITY },
    });
  }

  step(random: SeededRandom): void {
    const { event, expected, actual } = this.#event(random);
    const described = actual.map(describeAction);
    this.#history.push(`${event} → ${expected.join("; ")}`);
    const context = this.#history.slice(-20).join("\n");
    expect(described, context).toEqual(expected);
    expect(this.#session.isIdle, context).toBe(this.reference.isIdle);
  }

  #event(random: SeededRandom): { event: string; expected: string[]; actual: SessionAction[] } {
    const [session, reference] = [this.#session, this.reference];
    const chance = random.below(100);
    if (chance < 45) {
      const arrived = {
        text: randomPiece(random),
        contextId: pick(contexts, random),
        markup: pick(markups, random),
      };
      const event = `text ${JSON.stringify(arrived)}`;
      return { event, expected: reference.text(arrived), actual: session.text(arrived) };
    }
    const running = reference.running ?? -1;
    if (chance < 75)
      return { event: "finished", expected: reference.finished(running), actual: session.finished(running) };
    if (chance < 77)
      return { event: "failed", expected: reference.failed(running), actual: session.failed(running) };
    if (chance < 89) return { event: "flush", expected: reference.flush(), actual: session.flush() };
    if (chance < 93) return { event: "clear", expected: reference.clear(), actual: session.clear() };
    if (chance < 97) return { event: "silence", expected: reference.silence(), actual: session.silence() };
    if (chance < 99) return { event: "eos", expected: reference.eos(), actual: session.eos() };
    return { event: "drain", expected: reference.drain(), actual: session.drain() };
  }
}

/** Returns a few words, split at any position, because the tokens of a language model are not words. */
function randomPiece(random: SeededRandom): string {
  if (random.below(6) === 0) return pick(["", " ", "\n\n", "  "], random);
  const text = Array.from({ length: 1 + random.below(4) }, () => pick(words, random)).join(" ");
  const from = random.below(4) === 0 ? random.below(text.length) : 0;
  return `${text.slice(from)}${pick(["", " "], random)}`;
}

function pick<Value>(values: readonly Value[], random: SeededRandom): Value {
  return values[random.below(values.length)] as Value;
}
