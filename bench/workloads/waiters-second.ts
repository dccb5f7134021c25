import { setTimeout as sleep } from "node:timers/promises";
import { now } from "../../__tests__/support/monotonic.js";
import type { LockerOptions } from "../contenders/locker.js";
import { type Bench, moneyOf } from "../results.js";
import { Team } from "../worker-process.js";

export const LONG_LEASE_MS = 30_000;
/** By then whoever waits has lined up. */
export const START_MS = 6_000;
/** As long as it takes until each place has been renewed once. */
export const WINDOW_MS = LONG_LEASE_MS / 2;

/** Contenders that are this library: as it comes, and fair. */
export type Own = "dynamutex" | "fair";
export type Kind = Pick<LockerOptions, "permits" | "side">;

export async function optionsOf(
  { ground }: Bench,
  name: Own | "verrou",
  leaseMs: number,
  tag: string,
  kind: Kind,
): Promise<LockerOptions> {
  return { ...(await ground.options(name, leaseMs, tag)), ...kind };
}

/** What so many hosts that wait for all that there is cost, each in a second. */
export async function waitersSecond(bench: Bench, name: Own, count: number, kind: Kind = {}): Promise<number> {
  return moneyOf(await unitsOfWaiter(bench, name, count, kind));
}

/** The same in read and write units. */
export async function unitsOfWaiter(
  bench: Bench,
  name: Own | "verrou",
  count: number,
  kind: Kind = {},
): Promise<{ readonly read: number; readonly write: number }> {
  bench.say(`a waiter's second, ${count} waiting, ${name} ${JSON.stringify(kind)}`);
  await using holders = new Team(kind.permits ?? 1);
  await using others = new Team(1);
  const { ground } = bench;
  const lock = ground.name();
  const [tag, holder] = [`waiters-for-${lock}`, `holder-of-${lock}`];
  const held = kind.side === undefined ? kind : { side: "exclusive" as const };
  await holders.open(name, await optionsOf(bench, name, LONG_LEASE_MS, holder, held), lock);
  await others.open(name, await optionsOf(bench, name, LONG_LEASE_MS, tag, kind), lock, { count });
  await Promise.all(holders.workers.map((worker) => worker.ask("lock", { name: lock })));
  const from = now() + START_MS;
  others.only.ask("pass", { name: lock }).catch(() => undefined);
  await sleep(START_MS + WINDOW_MS);
  const { read, write } = ground.cost({ tag, from, to: from + WINDOW_MS });
  const seconds = count * (WINDOW_MS / 1_000);
  return { read: read / seconds, write: write / seconds };
}
