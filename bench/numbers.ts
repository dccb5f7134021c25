/** The value in the middle; of an even number of values the mean of the two. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** @param share from 0 to 1; between two values the straight line. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  const place = (sorted.length - 1) * share;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place - Math.floor(place));
}

/** For people: three digits that count, and thousands apart. */
export function show(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  const [whole = "", fraction] = value.toFixed(Math.min(digits, 3)).split(".");
  const apart = whole.replace(/\B(?=(\d{3})+$)/g, " ");
  const rest = fraction?.replace(/0+$/, "");
  return rest ? `${apart}.${rest}` : apart;
}
