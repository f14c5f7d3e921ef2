export interface Curve {
  readonly name: string;
  /** Shares from 0 to 1, one for each load. */
  readonly shares: readonly number[];
}

export interface LatencyPanel {
  readonly title: string;
  readonly curves: readonly Curve[];
}

const width = 860;
const plotTop = 64;
const plotHeight = 200;
const panelWidth = 220;
const firstLeft = 60;
const panelGap = 50;
const colors = [
  ["#0969da", "#58a6ff"],
  ["#bc4c00", "#f0883e"],
  ["#1a7f37", "#3fb950"],
  ["#8250df", "#bc8cff"],
] as const;

const style = [
  "text { font: 12px system-ui, sans-serif; fill: #1f2328; }",
  "text.title { font-weight: 600; font-size: 14px; }",
  ".end { text-anchor: end; }",
  ".middle { text-anchor: middle; }",
  ".paper { fill: #ffffff; }",
  ".grid { stroke: #d1d9e0; }",
  ".curve { fill: none; stroke-width: 2; }",
  ...colors.map(([light], i) => `.c${i} { stroke: ${light}; } .s${i} { fill: ${light}; }`),
  "@media (prefers-color-scheme: dark) {",
  "  text { fill: #f0f6fc; } .paper { fill: #0d1117; } .grid { stroke: #3d444d; }",
  ...colors.map(([, dark], i) => `  .c${i} { stroke: ${dark}; } .s${i} { fill: ${dark}; }`),
  "}",
].join("\n");

/** An SVG of shares by load, with a panel for each number of API processes. */
export function plotShares(title: string, loads: readonly number[], panels: readonly LatencyPanel[]): string {
  const highest = Math.max(0.01, ...panels.flatMap(({ curves }) => curves.flatMap(({ shares }) => shares)));
  const top = Math.ceil(highest * 20) / 20;
  const curves = panels[0]?.curves ?? [];
  const height = plotTop + plotHeight + 60 + 20 * curves.length;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${title}</title>`,
    `<style>\n${style}\n</style>`,
    `<rect width="${width}" height="${height}" class="paper"/>`,
    `<text x="${firstLeft}" y="24" class="title">${title}</text>`,
    ...panels.flatMap((panel, i) => panelOf(panel, loads, top, firstLeft + i * (panelWidth + panelGap))),
    ...curves.flatMap(({ name }, i) => keyRow(name, i)),
    "</svg>\n",
  ].join("\n");
}

function panelOf(
  { title, curves }: LatencyPanel,
  loads: readonly number[],
  top: number,
  left: number,
): string[] {
  const bottom = plotTop + plotHeight;
  const x = (place: number) => left + (panelWidth * place) / (loads.length - 1);
  const y = (share: number) => bottom - (plotHeight * share) / top;
  const grid = [0, 0.25, 0.5, 0.75, 1].flatMap((part) => [
    `<line class="grid" x1="${left}" y1="${y(part * top)}" x2="${left + panelWidth}" y2="${y(part * top)}"/>`,
    `<text x="${left - 6}" y="${y(part * top) + 4}" class="end">${(100 * part * top).toFixed(1)} %</text>`,
  ]);
  const marks = loads.map(
    (load, i) => `<text x="${x(i)}" y="${bottom + 18}" class="middle">${Math.round(100 * load)} %</text>`,
  );
  const lines = curves.map(({ shares }, i) => {
    const points = shares.map((share, place) => `${x(place).toFixed(1)},${y(share).toFixed(1)}`).join(" ");
    return `<polyline class="curve c${i % colors.length}" points="${points}"/>`;
  });
  return [`<text x="${left}" y="${plotTop - 14}">${title}</text>`, ...grid, ...marks, ...lines];
}

function keyRow(name: string, place: number): string[] {
  const y = plotTop + plotHeight + 46 + 20 * place;
  return [
    `<rect x="${firstLeft}" y="${y - 9}" width="10" height="10" class="s${place % colors.length}"/>`,
    `<text x="${firstLeft + 18}" y="${y}">${name}</text>`,
  ];
}
