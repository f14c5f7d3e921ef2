import { setImmediate as letOthersRun } from "node:timers/promises";
import { Failure } from "../../../server/contract/errors.ts";
import { checkLongMarkup } from "../../../server/text/markup.ts";
import { planSpeech, type SpeechPlanOptions } from "../../../server/text/planning/plan.ts";
import type { Measurement, TargetResult } from "../common/measurement.ts";
import { markdownTable } from "../common/page.ts";

const characters = 1_000_000;
const mostMs = 50;

/** Texts that repeat a unit. The units use as many rules of the normalizer as possible. */
const inputs: readonly { readonly what: string; readonly language: string; readonly unit: string }[] = [
  { what: "prose", language: "eng", unit: "It is 5 km to the old town, and it is late. " },
  { what: "one word", language: "eng", unit: "a" },
  { what: "one number", language: "deu", unit: "1" },
  { what: "separate digits", language: "fra", unit: "1 " },
  { what: "telephone numbers", language: "deu", unit: "0171 1234567 " },
  { what: "dates and times", language: "spa", unit: "el 24/7/2023 a las 9:30 " },
  { what: "money", language: "eng", unit: "$9.99/month " },
  { what: "abbreviations", language: "deu", unit: "z. B. " },
  { what: "addresses", language: "eng", unit: "a@b.de/1.2.3.4 " },
  { what: "signs", language: "fra", unit: "$" },
  { what: "slashes", language: "eng", unit: "a1/" },
  { what: "full stops", language: "eng", unit: "." },
  { what: "emoji", language: "eng", unit: "😀 " },
  { what: "combining marks", language: "eng", unit: "\u0301" },
  { what: "Chinese without spaces", language: "eng", unit: "日本" },
  { what: "pauses", language: "eng", unit: "<0>" },
  { what: "phonemes", language: "eng", unit: "{k1Ast0xm} " },
  { what: "an opened brace", language: "eng", unit: "{s" },
];

interface Step {
  readonly wallMs: number;
  /** The processor time of the main thread. Other programs on the machine do not affect it. */
  readonly cpuMs: number;
}

/**
 * Measures the longest time for which the text of a request blocks the event loop of a model tier. A step is
 * the work between two points at which the tier lets other requests run.
 */
export const longTexts: Measurement = {
  name: "Long texts",
  async measure() {
    for (const { unit, language } of inputs) await longestStep(unit.repeat(2_000), language);
    const rows: { what: string; language: string; longest: Step }[] = [];
    for (const { what, language, unit } of inputs) {
      console.log(`    ${what}`);
      const text = unit.repeat(Math.floor(characters / unit.length));
      rows.push({ what, language, longest: await longestStep(text, language) });
    }
    return finding(rows);
  },
};

/** Checks and plans a text as a request does. Returns the longest step by processor time. */
async function longestStep(text: string, language: string): Promise<Step> {
  const options: SpeechPlanOptions = {
    normalize: true,
    language,
    quickStart: true,
    pauses: true,
    phonemes: true,
    inlineStretch: [],
  };
  const watch = new StepWatch();
  try {
    await checkLongMarkup(text, options, () => watch.rest());
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    watch.end(); // Invalid markup ends a request. The time until then counts.
    return watch.longest;
  }
  await watch.rest();
  for (const _segment of planSpeech(text, options)) await watch.rest();
  watch.end();
  return watch.longest;
}

class StepWatch {
  longest: Step = { wallMs: 0, cpuMs: 0 };
  #startedAt = performance.now();
  #cpu = process.threadCpuUsage();

  /** Ends a step, lets other callbacks run, and starts the next step. */
  async rest(): Promise<void> {
    this.end();
    await letOthersRun();
    this.#startedAt = performance.now();
    this.#cpu = process.threadCpuUsage();
  }

  end(): void {
    const { user, system } = process.threadCpuUsage(this.#cpu);
    const step = { wallMs: performance.now() - this.#startedAt, cpuMs: (user + system) / 1000 };
    if (step.cpuMs > this.longest.cpuMs) this.longest = step;
  }
}

function finding(
  rows: readonly { readonly what: string; readonly language: string; readonly longest: Step }[],
): TargetResult {
  const worst = Math.max(...rows.map(({ longest }) => longest.cpuMs));
  const shown = (ms: number) => `${ms.toFixed(1)} ms`;
  return {
    targets: [
      {
        what: `longest step of a text of ${characters} characters, ${rows.length} kinds of text, processor time`,
        target: `at most ${mostMs} ms`,
        measured: shown(worst),
        met: worst <= mostMs,
      },
    ],
    text: `The model tier reads a long text in steps, and lets other requests run between two steps. The table has the longest step of a text of ${characters} characters. The time on the clock includes the time in which other programs used the
core.

${markdownTable(
  ["text", "language", "processor time", "time on the clock"],
  rows.map(({ what, language, longest }) => [what, language, shown(longest.cpuMs), shown(longest.wallMs)]),
)}`,
  };
}
