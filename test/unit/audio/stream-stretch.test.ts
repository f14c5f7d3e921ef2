import { expect, test } from "vitest";
import { createStreamStretcher, stretchRuns } from "../../../server/audio/time-stretch.ts";

const rate = 24_000;
/** A voice-like tone with a changing pitch. */
const speech = Int16Array.from({ length: rate }, (_, i) =>
  Math.round(8000 * Math.sin(i / 20 + 30 * Math.sin(i / 9000)) + 3000 * Math.sin(i / 7)),
);

function streamed(stretch: number, piece: number): number[] {
  const stretcher = createStreamStretcher(rate, stretch);
  const heard: number[] = [];
  for (let at = 0; at < speech.length; at += piece)
    heard.push(...stretcher.push(speech.subarray(at, at + piece)));
  return [...heard, ...stretcher.finish()];
}

test.each([
  [0.5, 2048],
  [0.8, 333],
  [1.3, 2048],
  [2, 16_384],
])(
  "speech that is stretched %f times while it comes is exactly as long, whatever the pieces (%i)",
  (stretch, piece) => {
    const heard = streamed(stretch, piece);
    expect(heard.length).toBe(Math.round(speech.length * stretch));
    expect(heard).toEqual(streamed(stretch, speech.length));
  },
);

test("a stretched stream sounds like the stretched whole, except at its end", () => {
  const whole = [...stretchRuns(speech, rate, [{ samples: speech.length, stretch: 1.3 }])].flatMap(
    (piece) => [...piece],
  );
  const same = whole.length - rate / 10;
  expect(streamed(1.3, 2048).slice(0, same)).toEqual(whole.slice(0, same));
});

test("final samples are returned at once", () => {
  const stretcher = createStreamStretcher(rate, 1.5);
  const first = stretcher.push(speech.subarray(0, rate / 2));
  expect(first.length).toBeGreaterThan(0.6 * rate);
});
