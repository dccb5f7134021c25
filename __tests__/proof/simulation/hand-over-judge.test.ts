import { beforeEach, expect, test } from "@jest/globals";
import { LOCK_SORT, lockAt, RESULT_AND_LOCK } from "../../../lib/protocol/addresses.js";
import { numberOfMark } from "../../../lib/protocol/mark.js";
import type { Take, Vacate } from "../../../lib/protocol/writes.js";
import { MemoryTable } from "../../../lib/testing/memory-table.js";
import type { Message } from "../../support/message.js";
import { Coverage } from "./coverage.js";
import { HandOverJudge } from "./hand-over-judge.js";
import type { Holding } from "./invariants.js";
import { Machine, type Process } from "./machine.js";
import { Scheduler } from "./scheduler.js";

const EPOCH = Date.UTC(2026, 10, 20, 12);
const NAME = "report";
const WANTED = numberOfMark({ until: EPOCH + 60_000, needMs: 1_000 });
const VACATE: Vacate = {
  kind: "vacate",
  at: lockAt(NAME),
  uuid: "section",
  leaves: { kind: "free" },
  remembers: "nothing",
};
const RELEASE = { kind: "write", write: VACATE } as const;

let scheduler: Scheduler;
let judge: HandOverJudge;
let process: Process;

beforeEach(() => {
  scheduler = new Scheduler();
  judge = new HandOverJudge({ scheduler, table: new MemoryTable(), coverage: new Coverage(), epoch: EPOCH });
  process = new Machine(scheduler, { aheadMs: 0, monotonicPpm: 0, wallPpm: 0 }, { epoch: EPOCH, seed: 1 }).start();
  judge.takesTurns(process, NAME);
  judge.took({ name: NAME, uuid: "section", process, handOverMs: 100 } as Holding);
});

const at = (ms: number): Promise<unknown> =>
  scheduler.run(
    ms,
    () => false,
    () => undefined,
  );

const query = (first: string): Message & { readonly kind: "query" } => ({
  kind: "query",
  query: { name: NAME, first, last: LOCK_SORT, limit: 3, consistent: true },
});

const asks = (first: string = RESULT_AND_LOCK.first): unknown => judge.sent(process, query(first));

function hears(first: string = RESULT_AND_LOCK.first): void {
  judge.heard(process, query(first), { ...query(first), page: { rows: [], after: undefined } as never });
}

/** The section's release shows at 510 ms that others wait: they have their turn until 1 508 ms. */
async function releases(): Promise<void> {
  await at(500);
  judge.ended("section", { isGuarded: false });
  judge.sent(process, RELEASE);
  await at(510);
  const replaced = { name: NAME, sort: LOCK_SORT, uuid: "section", wanted: WANTED } as never;
  judge.heard(process, RELEASE, { ...RELEASE, outcome: { kind: "applied", replaced, drawn: undefined } });
}

/** A look is asked for before that, and answered after it. */
async function looksMeanwhile(first?: string): Promise<void> {
  await at(400);
  asks(first);
  await releases();
  await at(520);
  hears(first);
}

function claims(uuid: string): string | undefined {
  const take = { kind: "take", at: lockAt(NAME), uuid, after: {}, wanted: WANTED } as unknown as Take;
  return judge.sent(process, { kind: "write", write: take });
}

const EARLY = /is claimed .* ms before others have had their turn/;

test("a flight that had asked for its look when others got their turn claims once, and not twice", async () => {
  judge.flies(process, NAME);
  await looksMeanwhile();
  expect(claims("one")).toBeUndefined();
  expect(claims("two")).toMatch(EARLY);
  await at(1_509);
  expect(claims("three")).toBeUndefined();
});

test("a flight whose look leaves as the one before is answered had asked for it, too", async () => {
  judge.flies(process, NAME);
  await looksMeanwhile();
  asks();
  await at(540);
  hears();
  expect(claims("one")).toBeUndefined();
});

test("a flight whose call began in the turn of others claims too early by the look of a call before it", async () => {
  const landed = judge.flies(process, NAME);
  await looksMeanwhile();
  landed();
  judge.flies(process, NAME);
  expect(claims("one")).toMatch(EARLY);
});

test("a flight claims too early by a look at the queue", async () => {
  judge.flies(process, NAME);
  await looksMeanwhile(LOCK_SORT);
  expect(claims("one")).toMatch(EARLY);
});

test("a flight that looks in the turn of others claims too early", async () => {
  judge.flies(process, NAME);
  await releases();
  await at(520);
  asks();
  await at(530);
  hears();
  expect(claims("one")).toMatch(EARLY);
});
