import { expect, test } from "@jest/globals";
import { rowTarget } from "../../lib/kinds/kind.js";
import { mutexSettings } from "../../lib/options/mutex.js";
import { permitAt } from "../../lib/protocol/addresses.js";
import { Line, type LineBid, type Standing } from "../../lib/queues/line.js";
import { Sections } from "../../lib/queues/sections.js";
import { Turns } from "../../lib/queues/turns.js";
import { Bid } from "../../lib/taking/bid.js";
import { Call } from "../../lib/taking/call.js";
import { ManualTime } from "../support/manual-time.js";
import { MemoryHost } from "../support/memory-host.js";

const NAME = "l";

/** The line of a semaphore with so many permits, of which nobody has any. */
function lineOf(permits: number) {
  const { session } = new MemoryHost(new ManualTime());
  const kind = new Sections(session).kinds.semaphore;
  const resource = { name: NAME, kind, at: permitAt(NAME, 0), settings: mutexSettings({}), permits, weight: 1 };
  const line = new Line(session, new Turns(session), resource);
  line.capacity = permits;
  const caller = () => {
    const request = { resource, data: undefined, holdAtLeastMs: 0 };
    return { request, call: new Call<unknown>(session, NAME, { isPatient: true }), settle: () => undefined };
  };
  const stand = (): Standing => line.add(caller());
  return { line, stand, newTry: (): LineBid => new Bid(session, caller()) };
}

test("a bid asks for one call: when that goes without the lock, the bid is withdrawn, and another one begins", () => {
  const { line, stand } = lineOf(2);
  const [first, second, third] = [stand(), stand(), stand()];
  const [bid, other] = [line.newBid(true), line.newBid(true)];
  expect([first.bid, second.bid, third.bid]).toEqual([bid, other, undefined]);
  line.leave(first, { reason: new Error("it took too long") });
  expect([bid.asker, third.bid, bid.withdrawn.aborted]).toEqual([first, undefined, true]);
  // Two may still take a lease.
  expect(line.needsBid(true)).toBe(false);
  line.dismiss(bid);
  expect(line.needsBid(false)).toBe(false);
  line.dismiss(other);
  line.leave(second, { reason: new Error("it took too long") });
  expect(line.needsBid(false)).toBe(true);
  expect(line.newBid(false).asker).toBe(third);
});

test("a bid that nobody needs any more counts among the claims until it has ended", () => {
  const { line, stand } = lineOf(1);
  const only = stand();
  const bid = line.newBid(true);
  expect(line.isAheadOfTries).toBe(true);
  const reason = new Error("it took too long");
  line.leave(only, { reason });
  expect(bid.withdrawn.reason).toBe(reason);
  expect([line.isFull, line.isEmpty]).toEqual([true, false]);
  expect(line.isAheadOfTries).toBe(false);
  stand();
  expect([line.needsBid(true), line.isAheadOfTries]).toEqual([false, true]);
  line.dismiss(bid);
  expect(line.needsBid(true)).toBe(true);
});

test("the watcher ends when a lease passes to its waiter, and nobody waits for its claim: a fresh one begins", () => {
  const { line, stand } = lineOf(1);
  const [first, second] = [stand(), stand()];
  const watcher = line.newBid(false);
  line.leave(first, undefined);
  expect([watcher.withdrawn.aborted, second.bid, line.isFull]).toEqual([true, undefined, false]);
  expect(line.needsBid(false)).toBe(true);
  expect(line.newBid(false).asker).toBe(second);
});

test("what a bid has seen is that of the next one, until nobody waits any more", () => {
  const { line, stand } = lineOf(1);
  const [first, second] = [stand(), stand()];
  const bid = line.newBid(false);
  const reason = new Error("it took too long");
  line.leave(first, { reason });
  line.dismiss(bid);
  const next = line.newBid(false);
  expect(next.view).toBe(bid.view);
  line.leave(second, { reason });
  line.dismiss(next);
  stand();
  expect(line.newBid(false).view).not.toBe(bid.view);
});

test("several bids ask together only for those who come while nobody has to wait", () => {
  const { line, stand } = lineOf(3);
  stand();
  const bid = line.newBid(true);
  expect(line.isCrowded).toBe(false);
  stand();
  expect([line.needsBid(false), line.needsBid(true)]).toEqual([false, true]);
  line.newBid(true);
  // Its claim was refused, because another bid watches the lock.
  line.dismiss(bid);
  expect([line.isCrowded, line.needsBid(true)]).toEqual([true, true]);
  stand();
  expect(line.needsBid(true)).toBe(false);
});

test("who asks beside the line counts among its leases until it has one or gives up", () => {
  const { line, stand, newTry } = lineOf(1);
  const one = newTry();
  line.enter(one);
  expect([line.isFull, line.isEmpty, line.isCrowded]).toEqual([true, false, false]);
  stand();
  expect([line.needsBid(true), line.isCrowded]).toEqual([false, true]);
  line.dismiss(one);
  expect([line.needsBid(true), line.hasBid]).toEqual([true, false]);
});

test("an empty line is like a new one: the next caller has another number of permits, and knows no holder", () => {
  const { line, newTry, stand } = lineOf(2);
  const one = newTry();
  line.enter(one);
  expect(line.asking).toBe(one);
  const { view } = line;
  expect([line.tidy(), line.capacity, line.view === view]).toEqual([false, 2, true]);
  line.dismiss(one);
  expect([line.tidy(), line.capacity, line.view === view]).toEqual([true, 0, false]);
  expect(line.asking).toBeUndefined();
  stand();
});

test("the watcher pauses for no longer than the waiter with the shortest poll would", () => {
  const { line, stand } = lineOf(1);
  const { settings } = rowTarget(stand().request.resource);
  const watcher = line.newBid(false);
  expect(watcher.view.shared.longestPauseMs()).toBe(settings.poll.maxMs);
  const { request, call } = stand();
  const short = { ...request.resource, settings: mutexSettings({ poll: { minMs: 10, maxMs: 20 } }) };
  const impatient = line.add({ request: { ...request, resource: short }, call, settle: () => undefined });
  expect(watcher.view.shared.longestPauseMs()).toBe(20);
  line.leave(impatient, { reason: undefined });
  expect(watcher.view.shared.longestPauseMs()).toBe(settings.poll.maxMs);
});
