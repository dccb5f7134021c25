import { describe, expect, test } from "@jest/globals";
import { viewOf } from "../../lib/cli/lock-view.js";
import { inPlace, linesOf } from "../../lib/cli/ls.js";
import { duration, planRun, type RunOptions, showDuration, showTick, tick } from "../../lib/cli/options.js";
import { arrayToJson, toJson } from "../../lib/cli/output.js";
import type { LockInfo } from "../../lib/index.js";

test.each([
  ["30s", 30_000],
  ["5m", 300_000],
  ["500ms", 500],
  ["1h30m", 5_400_000],
  ["1.1h", 3_960_000],
  ["365.1d", 31_544_640_000],
  ["1.5s", 1_500],
  ["2d", 172_800_000],
  ["0", 0],
  ["0s", 0],
])("the duration %j is %p ms", (text, ms) => {
  expect(duration(text)).toBe(ms);
});

test.each(["", "5", "-5s", "5 s", "5s!", "s", "0.5ms", "5M", "5s,5s"])("%j is no duration", (text) => {
  expect(() => duration(text)).toThrow(/^Give a number and a unit/);
});

test.each([
  [0, "0ms"],
  [999.9, "999ms"],
  [1_000, "1s"],
  [65_000, "1m5s"],
  [7_200_000, "2h"],
  [7_205_000, "2h"],
  [90_061_000, "1d1h"],
])("%p ms show as %s", (ms, text) => {
  expect(showDuration(ms)).toBe(text);
});

test.each([
  ["42", 42],
  ["-1", -1],
  ["2026-05-04", Date.UTC(2026, 4, 4)],
  ["2026-05-04T10:00Z", Date.UTC(2026, 4, 4, 10)],
  ["2026-05-04T10:00:30.5+02:00", Date.UTC(2026, 4, 4, 8, 0, 30, 500)],
  ["2024-02-29", Date.UTC(2024, 1, 29)],
])("the tick %j is %p", (text, key) => {
  expect(tick(text)).toBe(key);
});

test.each(["2026-13-04", "2026-02-30", "2026-04-31T10:00+02:00", "2026-05-04T24:00Z", "2026-05-04T10:61Z"])(
  "%j does not exist",
  (text) => {
    expect(() => tick(text)).toThrow(/^This date does not exist: correct the day or the time\.$/);
  },
);

test.each(["2026-05-04T10:00", "v1.2.3", "1e3", "9007199254740993", ""])("%j is no tick", (text) => {
  expect(() => tick(text)).toThrow(/^Give a whole number or a date with its zone/);
});

test.each([
  [Date.UTC(2026, 4, 4, 10), "2026-05-04T10:00:00.000Z"],
  [42, "42"],
])("the tick %p shows as %s", (key, text) => {
  expect(showTick(key)).toBe(text);
});

describe("the options of run", () => {
  test("come to a lease of 30 s, a wait without an end, and a KILL within the safety margin", () => {
    expect(planRun({})).toEqual({
      waitMs: Number.POSITIVE_INFINITY,
      ttlMs: 30_000,
      safetyMarginMs: 3_000,
      killAfterMs: 2_000,
    });
  });

  test.each<[string, RunOptions]>([
    ["--no-wait", { wait: false }],
    ["--wait 0", { wait: 0 }],
    ["--every", { every: 60_000 }],
    ["--once", { once: 1, wait: true }],
  ])("%s asks once", (_, options) => {
    expect(planRun(options).waitMs).toBeUndefined();
  });

  test("--per makes the lease longer than the period, unless --ttl is given", () => {
    const lengths = [{ per: 60_000 }, { per: 1_000 }, { per: 60_000, ttl: 90_000 }];
    expect(lengths.map((options) => planRun({ permits: 2, ...options }).ttlMs)).toEqual([72_000, 30_000, 90_000]);
  });

  test.each<[string, RunOptions, RegExp]>([
    ["--every and --once", { every: 60_000, once: 1 }, /leave one of them out/],
    ["a tick and a wait", { once: 1, wait: 1_000 }, /^--once does not wait.* leave --wait out$/],
    [
      "a tick and permits",
      { every: 60_000, permits: 2 },
      /^--every .* leave --permits out, or give --per in its place/,
    ],
    ["more permits than there are", { permits: 2, take: 3 }, /^--take 3 .* give --permits 3 or more/],
    ["a period of nothing", { per: 60_000 }, /^--per is .* give --permits as well/],
    ["permits of nothing", { take: 2 }, /^--take 2 .* give --permits 2 or more/],
    ["a success without a tick", { untilSuccess: true }, /^--until-success .* --every or --once/],
    ["a KILL behind the margin", { ttl: 10_000, killAfter: 1_000 }, /margin of 1s, .* --ttl of more than 10s$/],
  ])("%s are refused with the remedy", (_, options, complaint) => {
    expect(() => planRun(options)).toThrow(complaint);
  });
});

const LOCK: LockInfo = {
  name: "deploy",
  kind: "mutex",
  uuid: "7",
  handedOff: false,
  owner: "web-1#4711",
  acquired: new Date(1_000),
  expires: new Date(31_000),
  ttlMs: 30_000,
  data: undefined,
  tick: undefined,
  attempts: undefined,
  succeeded: undefined,
};

const at = (ms: number) => ({ earliest: ms - 500, latest: ms + 500 });

test.each([
  ["held", LOCK, at(21_000), 10_000],
  ["held", LOCK, at(31_400), -400],
  ["expired", LOCK, at(41_000), -10_000],
  ["handed-off", { ...LOCK, handedOff: true }, at(21_000), 10_000],
  ["expired", { ...LOCK, handedOff: true }, at(41_000), -10_000],
  ["blocked", { ...LOCK, uuid: undefined }, at(21_000), 10_000],
  ["free", { ...LOCK, uuid: undefined }, at(41_000), undefined],
  ["free", { ...LOCK, uuid: undefined, expires: new Date(0) }, undefined, undefined],
])("a lock is shown as %s as far as the table's clock is known", (state, lock, bounds, leftMs) => {
  expect(viewOf(lock, bounds)).toMatchObject({ state, leftMs });
});

test("what would move the cursor is shown as an escape, and nothing is wider than the terminal", () => {
  const name = "a\u001b[2J\n\u007f\u009b";
  const lines = linesOf([viewOf({ ...LOCK, name }, at(21_000), 3)], { columns: 40 });
  expect(lines).toHaveLength(2);
  expect(lines[1]).toMatch(/^a\\u001b\[2J\\n\\u007f\\u009b {2}mutex {2}held/);
  expect(Math.max(...lines.map(({ length }) => length))).toBe(40);
});

test("what does not fit on the screen is left out, and said to be", () => {
  const drawn = inPlace(["a", "b", "c", "d"], 4);
  expect(drawn).toBe("\u001b[Ha\u001b[K\nb\u001b[K\n… and 2 more: use --prefix\u001b[K\n\u001b[J");
  expect(inPlace(["a", "b"], 4)).toBe("\u001b[Ha\u001b[K\nb\u001b[K\n\u001b[J");
});

test("whatever DynamoDB stores has a form in JSON, a line for each lock", () => {
  expect(arrayToJson([])).toBe("[]");
  expect(toJson({ text: "\u001b[2J\u007f\u009b31m" })).toBe('{"text":"\\u001b[2J\\u007f\\u009b31m"}');
  const data = { big: 2n ** 60n, set: new Set([1]), bytes: new Uint8Array([1, 2]), at: new Date(0) };
  expect(arrayToJson([data, {}])).toBe(
    '[\n{"big":"1152921504606846976","set":[1],"bytes":"AQI=","at":"1970-01-01T00:00:00.000Z"},\n{}\n]',
  );
});
