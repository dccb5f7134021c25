import { expect, test } from "@jest/globals";
import { type Caller, LocalLine } from "../lib/queues/local-line.js";
import { turn, watch } from "./support/eventually.js";

/** A caller that waits for as long as it takes. */
const caller = (): Caller => ({ enough: new AbortController().signal, waitedMs: 0, stay: () => () => undefined });

/** Who can go on with any lease, as long as that stands. */
const takerOf = (lease: { stands: boolean }) => ({ fits: () => true, take: () => lease.stands });

/** A line whose only lease is out. */
function lineWithLease() {
  const line = new LocalLine<object>(1);
  const lease = { stands: true };
  const first = caller();
  expect(line.tryLead(first, takerOf(lease))).toBe(true);
  line.settle(first, lease);
  return { line, lease };
}

test("who waits behind a lease that ends as it is passed on leads from then on", async () => {
  const { line, lease } = lineWithLease();
  const waiting = line.waitToLead(caller(), takerOf(lease));
  const watched = watch(waiting);
  lease.stands = false;
  expect(line.pass(lease)).toBe(false);
  await turn();
  expect([watched.settled, line.countAfter(0)]).toEqual([false, 1]);
  line.leave(lease);
  await waiting;
  expect(line.isLed).toBe(true);
});

test("who leads while a lease of its process ends as it is passed on still leads", async () => {
  const line = new LocalLine<object>(2);
  const lease = { stands: true };
  const [first, second] = [caller(), caller()];
  expect(line.tryLead(first, takerOf(lease))).toBe(true);
  line.settle(first, lease);
  expect(line.tryLead(second, takerOf(lease))).toBe(true);
  lease.stands = false;
  expect(line.pass(lease)).toBe(false);
  expect(line.leader?.who).toBe(second);
  line.leave(lease);
  line.leave(second);
  expect(line.isEmpty).toBe(true);
});

test("a lease is not passed on to the next where it is not its turn, although the first waits no longer", async () => {
  const { line, lease } = lineWithLease();
  const gone = new AbortController();
  const [first, second] = [{ ...caller(), enough: gone.signal }, caller()];
  const took: object[] = [];
  const takerFor = (who: object) => ({ fits: () => true, take: () => who !== first && took.push(who) > 0 });
  const turns = [line.waitToLead(first, takerFor(first)), line.waitToLead(second, takerFor(second))];
  for (const waiting of turns) waiting.catch(() => undefined);
  const upTo = line.first ?? 0;
  // Answered in the same moment, by its timeout say: it still stands in line.
  const isTurn = (): boolean => (line.first ?? Number.POSITIVE_INFINITY) <= upTo;
  Object.defineProperty(first.enough, "aborted", { value: true });
  expect(line.pass(lease, isTurn)).toBe(false);
  expect([took, line.first]).toEqual([[], upTo + 1]);
  expect(line.pass(lease)).toBe(true);
  expect(took).toEqual([second]);
});

test("who asks beside the line counts among its leases until it has one or waits no longer", () => {
  const line = new LocalLine<object>(1);
  line.enter();
  expect([line.isFull, line.isEmpty]).toEqual([true, false]);
  expect(line.tryLead(caller(), takerOf({ stands: true }))).toBe(false);
  line.exit();
  expect([line.isFull, line.isEmpty]).toEqual([false, true]);
});

test("who asked beside the line in vain leads before those who have come meanwhile", async () => {
  const line = new LocalLine<object>(1);
  const [first, second] = [caller(), caller()];
  line.enter();
  const waiting = watch(line.waitToLead(second, takerOf({ stands: true })));
  expect(line.exitToLead(first, takerOf({ stands: true }))).toBe(true);
  await turn();
  expect([line.leader?.who === first, waiting.settled]).toEqual([true, false]);
  line.leave(first);
  await turn();
  expect([line.leader?.who === second, waiting.settled]).toEqual([true, true]);
});

test("the next in line leads when who asked beside it gives up", async () => {
  const line = new LocalLine<object>(1);
  line.enter();
  const waiting = line.waitToLead(caller(), takerOf({ stands: true }));
  line.exit();
  await waiting;
  expect(line.isLed).toBe(true);
});
