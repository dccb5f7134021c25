import { describe, expect, test } from "@jest/globals";
import { crowd } from "../../support/crowded-host.js";
import { turn } from "../../support/eventually.js";
import { createGate } from "../../support/fault-proxy/gate.js";
import { hosts, isTake } from "../../support/memory-host.js";

describe("many names at once", () => {
  test("due ticks: each is granted, by at most one further write", async () => {
    const { host, all, takes } = crowd({ tick: 7, due: 7, attempt: 1 });
    const once = { once: 7, untilSuccess: { maxAttempts: 3 } };
    const runs = await all((name) => host.mutex(name).tryRun((lock) => lock.attempt, once));
    expect(runs.filter(({ ran }) => !ran)).toEqual([]);
    expect(takes()).toBeLessThanOrEqual(2 * runs.length);
  });

  test("rows that remember a token: each try gets its lock", async () => {
    const { host, all, takes } = crowd({ fence: 12n });
    const locks = await all((name) => host.mutex(name).tryLock());
    expect(locks.filter((lock) => lock === null)).toEqual([]);
    expect(takes()).toBeLessThanOrEqual(2 * locks.length);
  });

  test("sets of such rows: a set takes them by its second transaction", async () => {
    const { host, all } = crowd({ fence: 12n });
    await all((name) => host.lockAll([`${name}-a`, name, `${name}-b`]));
    expect(host.sent.filter(({ kind }) => kind === "writeAll").length).toBeLessThanOrEqual(2 * 60);
    expect(host.sent.filter(({ kind }) => kind === "read")).toEqual([]);
  });

  test("a wait that trusts no clock takes over when it has watched its row for the row's ttl", async () => {
    const { time, host, all } = crowd({ uuid: "dead" }, { expires: 2 ** 42 });
    await all((name) => host.mutex(name, { takeover: "unchanged" }).lock());
    expect(time.elapsed).toBeLessThan(30_000 + 100);
  });

  test("a try whose claim got no answer knows its own row", async () => {
    const { host, all } = crowd({ fence: 12n });
    const lost = new Set<string>();
    host.fate = (message) => {
      if (message.kind !== "write" || message.write.kind !== "take" || !message.write.at.name.endsWith("7"))
        return "answered";
      if (host.table.row(message.write.at)?.uuid !== undefined || lost.has(message.write.at.name)) return "answered";
      lost.add(message.write.at.name);
      return "reply lost";
    };
    const locks = await all((name) => host.mutex(name, { ttlMs: 1_000 }).tryLock());
    expect(locks.filter((lock) => lock === null)).toEqual([]);
  });
});

test("a claim that had to wait for its slot says what is true of the time as it leaves", async () => {
  const { time, one } = hosts();
  const gate = createGate();
  one.fate = (message) => (isTake(message) ? gate.released : "answered");
  const others = Array.from({ length: 48 }, (_, index) => one.mutex(`other-${index}`).lock());
  const last = one.mutex("last", { ttlMs: 10_000 }).lock();
  await turn();
  await time.advance(1_000);
  expect(one.sent.length).toBe(48);
  gate.release();
  await Promise.all([...others, last]);
  expect(one.row("last")?.expires).toBe(time.now + 10_000);
});
