import type { Counts } from "./world.js";

/** The means of one workload: each thing done, and what one of them costs. */
export type Figures = Readonly<Record<string, number>>;

export type Work = Readonly<Record<string, Figures>>;

/** What of all counts is the price, and not the work. */
const REQUESTS = "requests";
const PRICE = "requests for each";

/** A figure that is not what it was. */
export interface Change {
  readonly workload: string;
  readonly figure: string;
  readonly was: number;
  readonly is: number;
  /** By how much, in per cent of what it was. */
  readonly percent: number;
  readonly isWorse: boolean;
}

/** @param counts one for each seed. */
export function figuresOf(counts: readonly Counts[]): Figures {
  const sums = new Map<string, number>();
  for (const one of counts) for (const [what, count] of Object.entries(one)) add(sums, what, count);
  const requests = sums.get(REQUESTS) ?? 0;
  sums.delete(REQUESTS);
  const done = [...sums.values()].reduce((sum, one) => sum + one, 0);
  const means = [...sums].sort().map(([what, sum]) => [what, rounded(sum / counts.length)] as const);
  return Object.fromEntries([...means, [PRICE, rounded(requests / done)]]);
}

/** The figures that differ by more than `percent`, and those that are there on one side alone. */
export function changes(baseline: Work, measured: Work, percent: number): readonly Change[] {
  return Object.entries(measured).flatMap(([workload, figures]) => {
    const before = baseline[workload] ?? {};
    return [...new Set([...Object.keys(before), ...Object.keys(figures)])].flatMap((figure) => {
      const [was, is] = [before[figure] ?? 0, figures[figure] ?? 0];
      const by = was === 0 ? Number.POSITIVE_INFINITY : (100 * (is - was)) / was;
      if (Math.abs(by) <= percent) return [];
      return [{ workload, figure, was, is, percent: by, isWorse: figure === PRICE ? by > 0 : by < 0 }];
    });
  });
}

export function lineOf({ workload, figure, was, is, percent, isWorse }: Change): string {
  const by = `${percent > 0 ? "+" : ""}${percent.toFixed(1)} %`;
  return `${isWorse ? "worse" : "better"}: ${workload}, ${figure}: ${was} before, ${is} now (${by})`;
}

function add(sums: Map<string, number>, what: string, count: number): void {
  sums.set(what, (sums.get(what) ?? 0) + count);
}

/** Four digits: more would differ with every change of the library. */
const rounded = (number: number): number => Number(number.toPrecision(4));
