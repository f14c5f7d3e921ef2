/** Draws line plots as SVG. */

export interface Panel {
  readonly title: string;
  readonly lines: readonly {
    readonly name: string;
    readonly points: readonly { readonly x: number; readonly y: number }[];
  }[];
}

const panel = { width: 240, height: 180, gap: 60 };
const top = 64;
const left = 48;

/** The colors of each line, on light and on dark pages. */
const colors = [
  ["#0969da", "#58a6ff"],
  ["#bc4c00", "#f0883e"],
  ["#1a7f37", "#3fb950"],
  ["#8250df", "#bc8cff"],
] as const;
const colorRules = (theme: 0 | 1) =>
  colors
    .map((color, i) => `.line${i} { stroke: ${color[theme]}; } .dot${i} { fill: ${color[theme]}; }`)
    .join("\n");

const style = `text { font: 12px system-ui, sans-serif; fill: #1f2328; }
text.title { font-weight: 600; }
text.quiet { fill: #59636e; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.paper { fill: #ffffff; }
.grid { stroke: #d1d9e0; }
.line { fill: none; stroke-width: 2; }
${colorRules(0)}
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc; } text.quiet { fill: #9198a1; } .paper { fill: #0d1117; } .grid { stroke: #3d444d; }
${colorRules(1)}
}`;

interface Axes {
  /**
   * The start of the horizontal axes. The default is zero, so that a proportional cost is a line through the
   * origin.
   */
  readonly firstX?: number;
  /** The end of the vertical axes. By default, each axis ends at the highest value of its panel. */
  readonly mostY?: number;
}

/** Draws panels side by side, above a legend. */
export function linesPlot(title: string, axis: string, panels: readonly Panel[], axes: Axes = {}): string {
  const width = left + panels.length * (panel.width + panel.gap);
  const height = top + panel.height + 76;
  const names = panels[0]?.lines.map(({ name }) => name) ?? [];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${title}</title>`,
    `<style>\n${style}\n</style>`,
    `<rect width="${width}" height="${height}" class="paper"/>`,
    `<text x="${left}" y="24" class="title">${title}</text>`,
    ...panels.flatMap((one, i) => drawn(one, left + i * (panel.width + panel.gap), axis, axes)),
    ...names.flatMap((name, i) => [
      `<circle cx="${left + 6 + i * 160}" cy="${height - 16}" r="5" class="dot${i}"/>`,
      `<text x="${left + 18 + i * 160}" y="${height - 12}">${name}</text>`,
    ]),
    "</svg>\n",
  ].join("\n");
}

function drawn({ title, lines }: Panel, x0: number, axis: string, { firstX = 0, mostY }: Axes): string[] {
  const all = lines.flatMap(({ points }) => points);
  const most = {
    x: Math.max(1, ...all.map(({ x }) => x)),
    y: mostY ?? round(Math.max(0.001, ...all.map(({ y }) => y))),
  };
  const at = ({ x, y }: { x: number; y: number }) => ({
    x: (x0 + ((x - firstX) / (most.x - firstX)) * panel.width).toFixed(1),
    y: (top + panel.height * (1 - y / most.y)).toFixed(1),
  });
  const marks = [0, 0.5, 1].map((share) => share * most.y);
  const bottom = top + panel.height;
  return [
    `<text x="${x0}" y="${top - 14}" class="quiet">${title}</text>`,
    ...marks.flatMap((mark) => {
      const { y } = at({ x: firstX, y: mark });
      return [
        `<line x1="${x0}" x2="${x0 + panel.width}" y1="${y}" y2="${y}" class="grid"/>`,
        `<text x="${x0 - 6}" y="${Number(y) + 4}" class="quiet end">${Number(mark.toPrecision(3))}</text>`,
      ];
    }),
    `<text x="${x0}" y="${bottom + 18}" class="quiet">${firstX}</text>`,
    `<text x="${x0 + panel.width}" y="${bottom + 18}" class="quiet end">${most.x}</text>`,
    `<text x="${x0 + panel.width / 2}" y="${bottom + 34}" class="quiet middle">${axis}</text>`,
    ...lines.flatMap(({ points }, i) => [
      `<polyline class="line line${i}" points="${points.map((point) => `${at(point).x},${at(point).y}`).join(" ")}"/>`,
      ...points.map((point) => `<circle cx="${at(point).x}" cy="${at(point).y}" r="3" class="dot${i}"/>`),
    ]),
  ];
}

/** Rounds a number up to two significant digits. */
function round(value: number): number {
  const unit = 10 ** (Math.floor(Math.log10(value)) - 1);
  return Math.ceil(value / unit) * unit;
}
