import type { Chart } from "./results.js";

const WIDTH = 720;
const HEIGHT = 400;
const FRAME = { left: 76, right: 176, top: 48, bottom: 56 };
/** Of the lines, in order; apart for the colour-blind too. */
const COLOURS = ["#0b6e99", "#d1495b", "#edae49", "#5b8c5a", "#7a5195", "#666666"];

interface Scale {
  readonly ticks: readonly number[];
  readonly at: (value: number) => number;
}

/** A line chart as SVG, with light and dark readers in mind: it brings its own background. */
export function svg({ title, x, y, series }: Chart): string {
  const points = series.flatMap((one) => one.points);
  const across = scale(
    points.map(([value]) => value),
    x.log ?? false,
    FRAME.left,
    WIDTH - FRAME.right,
  );
  const up = scale(
    points.map(([, value]) => value),
    y.log ?? false,
    HEIGHT - FRAME.bottom,
    FRAME.top,
  );
  const bottom = HEIGHT - FRAME.bottom;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" font-family="system-ui, sans-serif" font-size="12" fill="#222">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    text(FRAME.left, 24, title, 'font-size="15" font-weight="600"'),
    ...up.ticks.flatMap((tick) => [
      `<line x1="${FRAME.left}" x2="${WIDTH - FRAME.right}" y1="${up.at(tick)}" y2="${up.at(tick)}" stroke="#ddd"/>`,
      text(FRAME.left - 8, up.at(tick) + 4, label(tick), 'text-anchor="end"'),
    ]),
    ...across.ticks.flatMap((tick) => [
      `<line x1="${across.at(tick)}" x2="${across.at(tick)}" y1="${bottom}" y2="${bottom + 5}" stroke="#888"/>`,
      text(across.at(tick), bottom + 19, label(tick), 'text-anchor="middle"'),
    ]),
    `<line x1="${FRAME.left}" x2="${WIDTH - FRAME.right}" y1="${bottom}" y2="${bottom}" stroke="#888"/>`,
    text((FRAME.left + WIDTH - FRAME.right) / 2, HEIGHT - 14, x.title, 'text-anchor="middle"'),
    `<text transform="translate(18 ${(FRAME.top + bottom) / 2}) rotate(-90)" text-anchor="middle">${escaped(y.title)}</text>`,
    ...lines(series, across, up),
    "</svg>",
    "",
  ].join("\n");
}

function lines(series: Chart["series"], across: Scale, up: Scale): readonly string[] {
  const names = apart(series.map(({ points }) => up.at(points.at(-1)?.[1] ?? 0)));
  return series.flatMap(({ title, points }, index) => {
    const colour = COLOURS[index % COLOURS.length];
    const places = points.map(([px, py]) => [across.at(px), up.at(py)] as const);
    return [
      `<polyline points="${places.map((place) => place.join(",")).join(" ")}" fill="none" stroke="${colour}" stroke-width="2"/>`,
      ...places.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="3.5" fill="${colour}"/>`),
      text((places.at(-1)?.[0] ?? 0) + 10, (names[index] ?? 0) + 4, title, `fill="${colour}"`),
    ];
  });
}

/** Moves names that would lie on one another down, from the top one on. */
function apart(heights: readonly number[]): readonly number[] {
  const moved = [...heights];
  const order = heights.map((_, index) => index).sort((one, other) => (heights[one] ?? 0) - (heights[other] ?? 0));
  let last = Number.NEGATIVE_INFINITY;
  for (const index of order) {
    last = Math.max(heights[index] ?? 0, last + 16);
    moved[index] = last;
  }
  return moved;
}

function scale(values: readonly number[], log: boolean, from: number, to: number): Scale {
  const ticks = log ? decades(values) : steps(Math.max(...values, 0));
  const measure = log ? (value: number) => Math.log10(Math.max(value, ticks[0] ?? 1)) : (value: number) => value;
  const [low, high] = [measure(ticks[0] ?? 0), measure(ticks.at(-1) ?? 1)];
  return {
    ticks,
    at: (value) => Math.round((from + ((measure(value) - low) / (high - low || 1)) * (to - from)) * 10) / 10,
  };
}

/** From 0 to above the greatest, in about five round steps. */
function steps(greatest: number): number[] {
  const rough = (greatest || 1) / 5;
  const decade = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((factor) => factor * decade >= rough) ?? 10) * decade;
  return Array.from({ length: Math.ceil((greatest || 1) / step) + 1 }, (_, index) =>
    Number((index * step).toPrecision(6)),
  );
}

/** Powers of ten around the values; of four where they would be too few. */
function decades(values: readonly number[]): number[] {
  const positive = values.filter((value) => value > 0);
  const [least, greatest] = [Math.min(...positive), Math.max(...positive)];
  const base = greatest / least > 100 ? 10 : 4;
  const power = (value: number): number => Math.log(value) / Math.log(base);
  const first = Math.floor(power(least) + 1e-9);
  const last = Math.max(Math.ceil(power(greatest) - 1e-9), first + 1);
  return Array.from({ length: last - first + 1 }, (_, index) => Number((base ** (first + index)).toPrecision(6)));
}

function label(value: number): string {
  return value >= 1_000 ? `${value}`.replace(/\B(?=(\d{3})+$)/g, " ") : `${value}`;
}

function text(px: number, py: number, content: string, more = ""): string {
  return `<text x="${px}" y="${py}" ${more}>${escaped(content)}</text>`;
}

function escaped(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
