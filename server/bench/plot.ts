import type { PlaybackReport, Report } from "./report.ts";

export interface Series {
  readonly name: string;
  readonly run: Report;
}

const width = 860;
const plotTop = 64;
const plotHeight = 220;
const left = { x: 56, width: 400 };
const right = { x: 580, width: 200 };
const keyTop = plotTop + plotHeight + 64;
const rowHeight = 22;

/** The colors of each class, for light and for dark pages. */
const colors = [
  ["text", "fill", "#1f2328", "#f0f6fc"],
  [".quiet", "fill", "#59636e", "#9198a1"],
  [".paper", "fill", "#ffffff", "#0d1117"],
  [".grid", "stroke", "#d1d9e0", "#3d444d"],
  [".smooth", "fill", "#8ec5a0", "#2d6a3e"],
  [".brief", "fill", "#e3b341", "#9e6a03"],
  [".starved", "fill", "#cf222e", "#f85149"],
  ...[
    ["#0969da", "#58a6ff"],
    ["#bc4c00", "#f0883e"],
    ["#1a7f37", "#3fb950"],
    ["#8250df", "#bc8cff"],
  ].flatMap(([light, dark], i) => [
    [`.curve${i}`, "stroke", light, dark],
    [`.swatch${i}`, "fill", light, dark],
  ]),
] as const;
const hues = 4;

/**
 * The style sheet follows the color scheme of the reader's system, and sets a background so that the plot is
 * readable on every page.
 */
const style = [
  "text { font: 12px system-ui, sans-serif; }",
  "text.title { font-weight: 600; font-size: 14px; }",
  ".end { text-anchor: end; }",
  ".middle { text-anchor: middle; }",
  ".curve { fill: none; stroke-width: 2; stroke-linejoin: round; }",
  ...colors.map(([selector, property, light]) => `${selector} { ${property}: ${light}; }`),
  "@media (prefers-color-scheme: dark) {",
  ...colors.map(([selector, property, , dark]) => `  ${selector} { ${property}: ${dark}; }`),
  "}",
].join("\n");

/** Returns an SVG that shows the time to first audio of each run, and how many streams had stalls. */
export function plotRuns(title: string, series: readonly Series[]): string {
  const height = keyTop + rowHeight * series.length + 8;
  const timesMs = series.flatMap(({ run }) => run.firstAudioDistributionMs);
  const marks = timesMs.length === 0 ? [1, 10] : ratioMarks(Math.min(...timesMs), Math.max(...timesMs));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escapeXml(title)}</title>`,
    `<style>\n${style}\n</style>`,
    `<rect width="${width}" height="${height}" class="paper"/>`,
    text(left.x, 24, title, "title"),
    text(left.x, plotTop - 14, "requests with first audio within", "quiet"),
    ...axes(marks),
    ...series.map(({ run }, i) => curve(run.firstAudioDistributionMs, marks, i)),
    text(right.x, plotTop - 14, "streams, when played in real time", "quiet"),
    ...series.flatMap((one, i) => bar(one, i)),
    ...barKey(series.length),
    ...series.flatMap((one, i) => keyRow(one, i)),
    "</svg>\n",
  ].join("\n");
}

/**
 * Returns the marks of a logarithmic axis: 1, 2, 5, 10, 20, 50 and so on. The first mark is at most `least`,
 * the last mark is at least `greatest`, and the result has at least two marks.
 */
export function ratioMarks(least: number, greatest: number): number[] {
  const lowest = Math.max(least, 0.001);
  const marks: number[] = [];
  for (let power = Math.floor(Math.log10(lowest)); ; power++) {
    for (const factor of [1, 2, 5]) {
      const mark = Number(`${factor}e${power}`);
      if (mark <= lowest) marks.length = 0;
      marks.push(mark);
      if (mark >= greatest && marks.length > 1) return marks;
    }
  }
}

/** Returns the position of a time on the axis, in pixels from the left. */
function xOf(ms: number, marks: readonly number[]): number {
  const [from = 1, to = 10] = [marks[0], marks.at(-1)];
  const share = Math.log(Math.max(ms, from) / from) / Math.log(to / from);
  return left.x + left.width * share;
}

function axes(marks: readonly number[]): string[] {
  const bottom = plotTop + plotHeight;
  const shares = [0, 25, 50, 75, 100].flatMap((percent) => {
    const y = bottom - (plotHeight * percent) / 100;
    return [
      `<line class="grid" x1="${left.x}" y1="${y}" x2="${left.x + left.width}" y2="${y}"/>`,
      text(left.x - 8, y + 4, `${percent} %`, "quiet end"),
    ];
  });
  const times = marks.map((mark) =>
    text(Math.round(xOf(mark, marks)), bottom + 18, formatted(mark), "quiet middle"),
  );
  return [...shares, ...times, text(left.x + left.width / 2, bottom + 36, "milliseconds", "quiet middle")];
}

function curve(valuesMs: readonly number[], marks: readonly number[], index: number): string {
  const points = valuesMs.map((ms, percent) => {
    const x = xOf(ms, marks);
    const y = plotTop + plotHeight * (1 - percent / 100);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  return `<polyline class="curve curve${index % hues}" points="${points.join(" ")}"/>`;
}

const kinds = [
  ["smooth", "without stalls"],
  ["brief", "stalls of at most 100 ms"],
  ["starved", "longer stalls"],
] as const satisfies readonly (readonly [keyof PlaybackReport, string])[];

const barTop = (index: number) => plotTop + 8 + index * 44;

function bar({ name, run: { playback } }: Series, index: number): string[] {
  const y = barTop(index);
  const share = playback.starvedShare;
  const label = share === undefined ? "unknown" : `${(share * 100).toFixed(1)} % starved`;
  let x = right.x;
  const pieces = kinds.map(([kind]) => {
    const length = playback.streams === 0 ? 0 : (right.width * playback[kind]) / playback.streams;
    const piece = `<rect x="${x.toFixed(1)}" y="${y + 8}" width="${length.toFixed(1)}" height="14" class="${kind}"/>`;
    x += length;
    return piece;
  });
  return [text(right.x, y + 2, name), text(right.x + right.width, y + 2, label, "end"), ...pieces];
}

function barKey(bars: number): string[] {
  return kinds.flatMap(([kind, meaning], i) => {
    const y = barTop(bars) + 8 + i * 18;
    return [
      `<rect x="${right.x}" y="${y - 9}" width="10" height="10" class="${kind}"/>`,
      text(right.x + 18, y, meaning, "quiet"),
    ];
  });
}

function keyRow({ name, run }: Series, index: number): string[] {
  const y = keyTop + rowHeight * index;
  const times = run.firstAudioMs;
  const figures = times
    ? `p50 ${formatted(times.p50)}, p95 ${formatted(times.p95)}, p99 ${formatted(times.p99)} ms`
    : "no audio";
  return [
    `<rect x="${left.x}" y="${y - 9}" width="10" height="10" class="swatch${index % hues}"/>`,
    text(left.x + 18, y, name),
    text(left.x + left.width, y, figures, "quiet end"),
  ];
}

function formatted(value: number): string {
  return value >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

function text(x: number, y: number, content: string, kind = ""): string {
  return `<text x="${x}" y="${y}"${kind && ` class="${kind}"`}>${escapeXml(content)}</text>`;
}

function escapeXml(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
