/** A date with a zone, or none at all: then it is midnight UTC, on every host the same. */
const DATE = /^(\d{4}-\d\d-\d\d)(T([01]\d|2[0-3]):\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/;

/** The tick that `--once` names: a whole number as it is, a date as its epoch milliseconds; undefined for anything else. */
export function parseTick(text: string): number | undefined {
  const tick = /^-?\d+$/.test(text) ? Number(text) : epochOf(text);
  return Number.isSafeInteger(tick) ? tick : undefined;
}

function epochOf(text: string): number {
  const [, day] = DATE.exec(text) ?? [];
  // `Date` takes 30 February for 2 March.
  const exists = day !== undefined && new Date(day).toJSON()?.startsWith(day);
  return exists ? Date.parse(text) : Number.NaN;
}
