import { setTimeout as sleep } from "node:timers/promises";
import { now } from "../../__tests__/support/monotonic.js";
import { median, show } from "../numbers.js";
import { type Bench, type Line, moneyOf, type Workload } from "../results.js";
import { Team } from "../worker-process.js";
import { sections } from "./four-processes.js";
import { LONG_LEASE_MS, START_MS, WINDOW_MS, waitersSecond } from "./waiters-second.js";

const NAME = "fair";
const LEASE_MS = 3_000;
const ROUND_MS = 30_000;
const COUNTS = [1, 4, 16, 64];

export const fair: Workload = {
  name: "fair",
  title: "The fair queue",
  async run(bench) {
    const rounds = bench.quick ? 1 : 3;
    const processes = await repeat(rounds, () => sections(bench, NAME, ROUND_MS), bench, "4 processes");
    const tasks = await repeat(rounds, () => oneProcess(bench), bench, "32 tasks");
    const hosts = [];
    for (const count of bench.quick ? [1, 4] : COUNTS) {
      bench.say(`hand-overs, ${count} waiting`);
      const [handOverMs, requests] = await handOvers(bench, count);
      hosts.push({ count, handOverMs, requests, money: await waitersSecond(bench, NAME, count) });
    }
    bench.say("2 000 callers of one process, and 200 hosts");
    const callers = await standInLine(bench, { hosts: 1, each: bench.quick ? 200 : 2_000, apartMs: 0 });
    const crowd = await standInLine(bench, { hosts: bench.quick ? 20 : 200, each: 1, apartMs: 60 });
    const line = (title: string, value: number, goal: number, more: Partial<Line> = {}): Line => {
      return { title, values: { fair: value }, goal, ...more };
    };
    return {
      lines: [
        line("4 × 4 tasks, 10 ms: sections a second", median(processes.map((it) => it.perSecond)), 25, {
          better: "more",
        }),
        line("4 × 4 tasks, 10 ms: requests a section", median(processes.map((it) => it.requests)), 5),
        line("4 × 4 tasks, 10 ms: least share", median(processes.map((it) => it.leastShare)), 0.8, {
          better: "more",
          unit: "×",
        }),
        line("32 tasks of one process: sections a second", median(tasks.map((it) => it.perSecond)), 1_000, {
          better: "more",
        }),
        line("32 tasks of one process: requests a section", median(tasks.map((it) => it.requests)), 0.3),
        ...hosts.map(({ count, handOverMs }) =>
          line(`hand-over between hosts, ${count} waiting: median`, handOverMs, 100, { unit: "ms" }),
        ),
        ...hosts.flatMap(({ count, money }) => {
          const goal = { 4: 1.7, 64: 0.7 }[count];
          return goal === undefined ? [] : [line(`a waiter's second, ${count} waiting`, money, goal, { unit: "RRU" })];
        }),
        line(`${callers.count} callers of one process: out of order`, callers.inversions, 0),
        line(`${crowd.count} hosts of one caller: out of order`, crowd.inversions, 0),
      ],
      detail: {
        columns: ["waiting hosts", ...hosts.map(({ count }) => String(count))],
        rows: [
          ["ms a hand-over, median", ...hosts.map(({ handOverMs }) => show(handOverMs))],
          ["requests a section while the lock goes round", ...hosts.map(({ requests }) => show(requests))],
          ["RRU a waiter and second, 30 s leases", ...hosts.map(({ money }) => show(money))],
        ],
      },
      notes: [
        `Hand-overs: so many hosts and one more take the lock over and over, for 10 ms each, in ${ROUND_MS / 1_000} s; the time from ` +
          "the end of a section to the beginning of the next one of another host. Every host is a lock table and a client " +
          "of its own, in one process.",
        `A waiter's second: ${WINDOW_MS / 1_000} s from ${START_MS / 1_000} s after they began to wait, in read units; a write unit is five.`,
        `${callers.count} callers of one process, behind another host, were in after ${show(callers.ms)} ms with ` +
          `${show(callers.requests)} requests in all: ${costOf(callers)}. ${crowd.count} hosts of one caller each, which asked ` +
          `60 ms after one another: ${show(crowd.ms)} ms from the release on, ${costOf(crowd)}.`,
      ],
    };
  },
};

async function repeat<Round>(rounds: number, round: () => Promise<Round>, { say }: Bench, what: string) {
  const done: Round[] = [];
  for (let number = 1; number <= rounds; number++) {
    say(`${what}, round ${number}`);
    done.push(await round());
  }
  return done;
}

async function oneProcess({ ground, quick }: Bench): Promise<{ perSecond: number; requests: number }> {
  await using team = new Team(1);
  const lock = ground.name();
  const tag = `tasks-${lock}`;
  await team.open(NAME, await ground.options(NAME, LEASE_MS, tag), lock);
  const before = ground.cost({ tag }).requests;
  const { count, ms } = await team.only.ask("sections", { name: lock, tasks: 32, each: quick ? 20 : 100, holdMs: 0 });
  return { perSecond: (count / ms) * 1_000, requests: (ground.cost({ tag }).requests - before) / count };
}

/** @returns the median time of a hand-over, and the requests of a section. */
async function handOvers({ ground, quick }: Bench, waiting: number): Promise<readonly [number, number]> {
  await using team = new Team(1);
  const lock = ground.name();
  const tag = `rounds-${lock}`;
  await team.open(NAME, await ground.options(NAME, LEASE_MS, tag), lock, { count: waiting + 1 });
  const before = ground.cost({ tag }).requests;
  const all = await team.only.ask("goRound", { name: lock, forMs: quick ? 8_000 : ROUND_MS, holdMs: 10 });
  const pauses = all.flatMap(({ locker, from }, index) => {
    const last = all[index - 1];
    return last === undefined || last.locker === locker ? [] : [from - last.to];
  });
  return [median(pauses), (ground.cost({ tag }).requests - before) / all.length];
}

interface InLine {
  readonly count: number;
  /** How many came directly after one who had asked later. */
  readonly inversions: number;
  readonly ms: number;
  readonly requests: number;
  readonly money: number;
}

async function standInLine(
  { ground }: Bench,
  { hosts, each, apartMs }: { readonly hosts: number; readonly each: number; readonly apartMs: number },
): Promise<InLine> {
  await using holders = new Team(1);
  await using others = new Team(1);
  const lock = ground.name();
  const tag = `line-for-${lock}`;
  await holders.open(NAME, await ground.options(NAME, LONG_LEASE_MS, `holder-of-${lock}`), lock);
  await others.open(NAME, await ground.options(NAME, LONG_LEASE_MS, tag), lock, { count: hosts, cycles: 2 });
  await holders.only.ask("lock", { name: lock });
  const before = ground.cost({ tag });
  const standing = others.only.ask("standInLine", { name: lock, each, apartMs });
  await sleep(2_000 + hosts * apartMs);
  const from = await holders.only.ask("unlock", { name: lock });
  const entered = await standing;
  const ms = now() - from;
  const after = ground.cost({ tag });
  const money = moneyOf(after) - moneyOf(before);
  const inversions = entered.filter((number, index) => number < (entered[index - 1] ?? 0)).length;
  return { count: entered.length, inversions, ms, requests: after.requests - before.requests, money };
}

function costOf({ count, requests, money }: InLine): string {
  return `${show(requests / count)} requests and ${show(money / count)} read units for each`;
}
