import { type Html, html } from "./html.ts";

export interface Bar {
  readonly good: number;
  /** The chart draws this part above `good`. */
  readonly bad: number;
}

const width = 960;
const height = 144;

/** Draws one bar for each day, with the oldest day first. @param label the description for screen readers. */
export function barChart(label: string, bars: readonly Bar[]): Html {
  const highest = Math.max(1, ...bars.map(({ good, bad }) => good + bad));
  const step = width / Math.max(1, bars.length);
  const bar = (name: string, i: number, from: number, to: number) => {
    const [top, bottom] = [to, from].map((count) => height - (count / highest) * (height - 8));
    const barHeight = (bottom ?? 0) - (top ?? 0);
    return (
      barHeight > 0 &&
      html`<rect class="${name}" x="${(i * step + 1).toFixed(1)}" y="${(top ?? 0).toFixed(1)}" width="${(step - 2).toFixed(1)}" height="${barHeight.toFixed(1)}"/>`
    );
  };
  return html`<svg class="plot" viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" role="img" aria-label="${label}">
${bars.map(({ good, bad }, i) => [bar("good", i, 0, good), bar("bad", i, good, good + bad)])}</svg>`;
}
