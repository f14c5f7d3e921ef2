import { expect, test } from "vitest";
import { createStreamStretcher, stretchRuns } from "../../../server/audio/time-stretch.ts";

const rate = 24_000;
/** One second of a tone with a changing pitch, like a voice. */
const speech = Int16Array.from({ length: rate }, (_, i) =>
  Math.round(8000 * Math.sin(i / 20 + 30 * Math.sin(i / 9000)) + 3000 * Math.sin(i / 7)),
);

function streamed(stretch: number, piece: number): number[] {
  const stretcher = createStreamStretcher(rate, stretch);
  const output: number[] = [];
  for (let at = 0; at < speech.length; at += piece)
    output.push(...stretcher.push(speech.subarray(at, at + piece)));
  return [...output, ...stretcher.finish()];
}

test.each([
  [0.5, 2048],
  [0.8, 333],
  [1.3, 2048],
  [2, 16_384],
])(
  "the stretcher makes speech exactly %f times as long, for pieces of %i samples as for the whole",
  (stretch, piece) => {
    const output = streamed(stretch, piece);
    expect(output.length).toBe(Math.round(speech.length * stretch));
    expect(output).toEqual(streamed(stretch, speech.length));
  },
);

test("the stretcher returns the same samples for a stream as for the whole speech, except at the end", () => {
  const whole = [...stretchRuns(speech, rate, [{ samples: speech.length, stretch: 1.3 }])].flatMap(
    (piece) => [...piece],
  );
  const same = whole.length - rate / 10;
  expect(streamed(1.3, 2048).slice(0, same)).toEqual(whole.slice(0, same));
});

test("the stretcher returns stretched samples before the end of the speech", () => {
  const stretcher = createStreamStretcher(rate, 1.5);
  const first = stretcher.push(speech.subarray(0, rate / 2));
  expect(first.length).toBeGreaterThan(0.6 * rate);
});
