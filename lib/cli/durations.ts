const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

const PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/y;

/** Milliseconds of `30s`, `1h30m`, `500ms` or `0`; undefined for what is no duration, or is finer than 1 ms. */
export function parseDuration(text: string): number | undefined {
  if (text === "0") return 0;
  let sum = 0;
  PART.lastIndex = 0;
  for (let at = 0; at < text.length; at = PART.lastIndex) {
    const [, amount, unit] = PART.exec(text) ?? [];
    if (amount === undefined || unit === undefined) return undefined;
    sum += Number(amount) * UNITS[unit as keyof typeof UNITS];
  }
  return text !== "" && Number.isSafeInteger(sum) ? sum : undefined;
}

/** The same for people, in its two largest units: `2h5m`. Less than a second shows as such. */
export function showDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.floor(ms))}ms`;
  let rest = Math.floor(ms / 1_000) * 1_000;
  const parts: string[] = [];
  for (const unit of ["d", "h", "m", "s"] as const) {
    const count = Math.floor(rest / UNITS[unit]);
    rest -= count * UNITS[unit];
    if (count > 0) parts.push(`${count}${unit}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.join("");
}
