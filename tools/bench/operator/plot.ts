/** Lines over the number of TtsDeployments, as SVG. */

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

const style = `text { font: 12px system-ui, sans-serif; fill: #1f2328; }
text.title { font-weight: 600; }
text.quiet { fill: #59636e; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.paper { fill: #ffffff; }
.grid { stroke: #d1d9e0; }
.line { fill: none; stroke-width: 2; }
.line0 { stroke: #0969da; } .dot0 { fill: #0969da; }
.line1 { stroke: #bc4c00; } .dot1 { fill: #bc4c00; }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc; } text.quiet { fill: #9198a1; } .paper { fill: #0d1117; } .grid { stroke: #3d444d; }
.line0 { stroke: #58a6ff; } .dot0 { fill: #58a6ff; } .line1 { stroke: #f0883e; } .dot1 { fill: #f0883e; }
}`;

/**
 * Panels side by side. All axes start at zero, so that a straight line through the origin is a proportional
 * cost.
 */
export function linesPlot(title: string, axis: string, panels: readonly Panel[]): string {
  const width = left + panels.length * (panel.width + panel.gap);
  const height = top + panel.height + 76;
  const names = panels[0]?.lines.map(({ name }) => name) ?? [];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${title}</title>`,
    `<style>\n${style}\n</style>`,
    `<rect width="${width}" height="${height}" class="paper"/>`,
    `<text x="${left}" y="24" class="title">${title}</text>`,
    ...panels.flatMap((one, i) => drawn(one, left + i * (panel.width + panel.gap), axis)),
    ...names.flatMap((name, i) => [
      `<circle cx="${left + 6 + i * 160}" cy="${height - 16}" r="5" class="dot${i}"/>`,
      `<text x="${left + 18 + i * 160}" y="${height - 12}">${name}</text>`,
    ]),
    "</svg>\n",
  ].join("\n");
}

function drawn({ title, lines }: Panel, x0: number, axis: string): string[] {
  const all = lines.flatMap(({ points }) => points);
  const most = {
    x: Math.max(1, ...all.map(({ x }) => x)),
    y: round(Math.max(0.001, ...all.map(({ y }) => y))),
  };
  const at = ({ x, y }: { x: number; y: number }) => ({
    x: (x0 + (x / most.x) * panel.width).toFixed(1),
    y: (top + panel.height * (1 - y / most.y)).toFixed(1),
  });
  const marks = [0, 0.5, 1].map((share) => share * most.y);
  const bottom = top + panel.height;
  return [
    `<text x="${x0}" y="${top - 14}" class="quiet">${title}</text>`,
    ...marks.flatMap((mark) => {
      const { y } = at({ x: 0, y: mark });
      return [
        `<line x1="${x0}" x2="${x0 + panel.width}" y1="${y}" y2="${y}" class="grid"/>`,
        `<text x="${x0 - 6}" y="${Number(y) + 4}" class="quiet end">${Number(mark.toPrecision(3))}</text>`,
      ];
    }),
    `<text x="${x0}" y="${bottom + 18}" class="quiet">0</text>`,
    `<text x="${x0 + panel.width}" y="${bottom + 18}" class="quiet end">${most.x}</text>`,
    `<text x="${x0 + panel.width / 2}" y="${bottom + 34}" class="quiet middle">${axis}</text>`,
    ...lines.flatMap(({ points }, i) => [
      `<polyline class="line line${i}" points="${points.map((point) => `${at(point).x},${at(point).y}`).join(" ")}"/>`,
      ...points.map((point) => `<circle cx="${at(point).x}" cy="${at(point).y}" r="3" class="dot${i}"/>`),
    ]),
  ];
}

/** Rounded up to two digits. */
function round(value: number): number {
  const unit = 10 ** (Math.floor(Math.log10(value)) - 1);
  return Math.ceil(value / unit) * unit;
}
