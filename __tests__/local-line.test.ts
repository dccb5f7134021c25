import { expect, test } from "@jest/globals";
import { type Caller, LocalLine } from "../lib/queues/local-line.js";
import { turn, watch } from "./support/eventually.js";

const lasting = {
  endSignal: new AbortController().signal,
  waitedMs: 0,
  stay: () => () => undefined,
  seen: undefined,
};

/** A caller that waits for as long as it takes, and can go on with any lease, as long as that stands. */
const caller = (lease: { stands: boolean }): Caller<object> => ({
  wait: lasting,
  fits: () => true,
  take: () => lease.stands,
});

const leads = (line: LocalLine<object>, one: Caller<object>): boolean => line.leader?.caller === one;

/** A line whose only lease is out. */
async function lineWithLease(line: LocalLine<object> = new LocalLine<object>(1)) {
  const lease = { stands: true };
  const first = caller(lease);
  await line.waitToLead(first);
  expect(leads(line, first)).toBe(true);
  line.settle(first, lease);
  return { line, lease };
}

test("who waits behind a lease that ends as it is passed on leads from then on", async () => {
  const { line, lease } = await lineWithLease();
  const waiting = line.waitToLead(caller(lease));
  const watched = watch(waiting);
  lease.stands = false;
  expect(line.pass(lease)).toBe(false);
  await turn();
  expect([watched.settled, line.countAfter(0)]).toEqual([false, 1]);
  line.leave(lease);
  await waiting;
  expect(line.leader).toBeDefined();
});

test("who leads while a lease of its process ends as it is passed on still leads", async () => {
  const { line, lease } = await lineWithLease(new LocalLine<object>(2));
  const second = caller(lease);
  await line.waitToLead(second);
  lease.stands = false;
  expect(line.pass(lease)).toBe(false);
  expect(leads(line, second)).toBe(true);
  line.leave(lease);
  line.leave(second);
  expect(line.isEmpty).toBe(true);
});

test("a lease is not passed on to the next where it is not its turn, although the first waits no longer", async () => {
  let upTo = Number.POSITIVE_INFINITY;
  class Line extends LocalLine<object> {
    override get admitsFirst(): boolean {
      return (this.first ?? Number.POSITIVE_INFINITY) <= upTo;
    }
  }
  const { line, lease } = await lineWithLease(new Line(1));
  const took: object[] = [];
  const first = { wait: { ...lasting, endSignal: new AbortController().signal }, fits: () => true, take: () => false };
  const second = { wait: lasting, fits: () => true, take: () => took.push(second) > 0 };
  for (const one of [first, second]) line.waitToLead(one).catch(() => undefined);
  upTo = line.first ?? 0;
  // Answered in the same moment, by its timeout say: it still stands in line.
  Object.defineProperty(first.wait.endSignal, "aborted", { value: true });
  expect(line.pass(lease)).toBe(false);
  expect([took, line.first]).toEqual([[], upTo + 1]);
  upTo += 1;
  expect(line.pass(lease)).toBe(true);
  expect(took).toEqual([second]);
});

test("who asks beside the line counts among its leases until it has one or gives up; then the next leads", async () => {
  const line = new LocalLine<object>(1);
  line.beginClaim();
  expect([line.isFull, line.isEmpty]).toEqual([true, false]);
  const waiting = line.waitToLead(caller({ stands: true }));
  expect(line.leader).toBeUndefined();
  line.endClaim();
  await waiting;
  line.leave(line.leader?.caller ?? line);
  expect([line.isFull, line.isEmpty]).toEqual([false, true]);
});

test("who asked beside the line in vain leads before those who have come meanwhile", async () => {
  const line = new LocalLine<object>(1);
  const [first, second] = [caller({ stands: true }), caller({ stands: true })];
  line.beginClaim();
  const waiting = watch(line.waitToLead(second));
  expect(line.endClaimAndLead(first)).toBe(true);
  await turn();
  expect([leads(line, first), waiting.settled]).toEqual([true, false]);
  line.leave(first);
  await turn();
  expect([leads(line, second), waiting.settled]).toEqual([true, true]);
});
