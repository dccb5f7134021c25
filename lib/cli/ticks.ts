/** A date with a zone, or none at all: then it is midnight UTC, on every host the same. */
const DATE = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/;

/** The tick that `--once` names: a whole number as it is, a date as its epoch milliseconds; undefined for anything else. */
export function parseTick(text: string): number | undefined {
  const tick = /^-?\d+$/.test(text) ? Number(text) : DATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isSafeInteger(tick) ? tick : undefined;
}
