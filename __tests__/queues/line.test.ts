import { expect, test } from "@jest/globals";
import { rowTarget } from "../../lib/kinds/kind.js";
import { mutexSettings } from "../../lib/options/mutex.js";
import { permitAt } from "../../lib/protocol/addresses.js";
import { type Agent, Line, type Standing } from "../../lib/queues/line.js";
import { Sections } from "../../lib/queues/sections.js";
import { Turns } from "../../lib/queues/turns.js";
import { Call } from "../../lib/taking/call.js";
import { Wait } from "../../lib/taking/wait.js";
import { blockedFromNow } from "../../lib/taking/watch.js";
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
  return { line, session, stand, newTry: (): Agent => new Wait(session, caller()) };
}

test("an agent goes on for the first waiter that has none when its own has gone without the lock", () => {
  const { line, stand } = lineOf(2);
  const [first, second, third] = [stand(), stand(), stand()];
  const [agent, other] = [line.newAgent(true), line.newAgent(true)];
  expect([first.agent, second.agent, third.agent]).toEqual([agent, other, undefined]);
  line.leave(first, { reason: new Error("it took too long") });
  expect([agent.asker, third.agent, agent.endSignal.aborted]).toEqual([third, agent, false]);
  expect(line.needsAgent(true)).toBe(false);
});

test("an agent that nobody needs any more counts among the claims until it has ended", () => {
  const { line, stand } = lineOf(1);
  const only = stand();
  const agent = line.newAgent(true);
  expect(line.isAheadOfTries).toBe(true);
  const reason = new Error("it took too long");
  line.leave(only, { reason });
  expect(agent.endSignal.reason).toBe(reason);
  expect([line.isFull, line.isEmpty]).toEqual([true, false]);
  expect(line.isAheadOfTries).toBe(false);
  stand();
  expect([line.needsAgent(true), line.isAheadOfTries]).toEqual([false, true]);
  line.dismiss(agent);
  expect(line.needsAgent(true)).toBe(true);
});

test("the watcher ends when a lease passes to its waiter, and nobody waits for its claim: a fresh one begins", () => {
  const { line, stand } = lineOf(1);
  const [first, second] = [stand(), stand()];
  const watcher = line.newAgent(false);
  line.leave(first, undefined);
  expect([watcher.endSignal.aborted, second.agent, line.isFull]).toEqual([true, undefined, false]);
  expect(line.needsAgent(false)).toBe(true);
  expect(line.newAgent(false).asker).toBe(second);
});

test("an agent that does not watch yet goes on when a lease passes to its waiter: its claim is still out", () => {
  const { line, stand } = lineOf(2);
  const [first, second] = [stand(), stand()];
  const agent = line.newAgent(true);
  line.leave(first, undefined);
  expect([agent.asker, agent.endSignal.aborted]).toEqual([second, false]);
});

test("several agents ask together only for those who come while nobody has to wait", () => {
  const { line, stand } = lineOf(3);
  stand();
  const agent = line.newAgent(true);
  expect(line.isCrowded).toBe(false);
  stand();
  expect([line.needsAgent(false), line.needsAgent(true)]).toEqual([false, true]);
  line.newAgent(true);
  // Its claim was refused, because another agent watches the lock.
  line.dismiss(agent);
  expect([line.isCrowded, line.needsAgent(true)]).toEqual([true, true]);
  stand();
  expect(line.needsAgent(true)).toBe(false);
});

test("who asks beside the line counts among its leases until it has one or gives up", () => {
  const { line, stand, newTry } = lineOf(1);
  const one = newTry();
  line.enter(one);
  expect([line.isFull, line.isEmpty, line.isCrowded]).toEqual([true, false, false]);
  stand();
  expect([line.needsAgent(true), line.isCrowded]).toEqual([false, true]);
  line.dismiss(one);
  expect([line.needsAgent(true), line.hasAgent]).toEqual([true, false]);
});

test("an empty line is like a new one: the next caller has another number of permits, and knows no holder", () => {
  const { line, newTry, session, stand } = lineOf(2);
  const one = newTry();
  line.enter(one);
  expect(line.asking).toBe(one);
  line.blocked = blockedFromNow(session);
  expect([line.tidy(), line.capacity, line.blocked]).toEqual([false, 2, expect.anything()]);
  line.dismiss(one);
  expect([line.tidy(), line.capacity, line.blocked]).toEqual([true, 0, undefined]);
  expect(line.asking).toBeUndefined();
  stand();
});

test("the watcher pauses for no longer than the waiter with the shortest poll would", () => {
  const { line, stand } = lineOf(1);
  const { settings } = rowTarget(stand().request.resource);
  const watcher = line.newAgent(false);
  expect(watcher.longestPauseMs()).toBe(settings.poll.maxMs);
  const { request, call } = stand();
  const short = { ...request.resource, settings: mutexSettings({ poll: { minMs: 10, maxMs: 20 } }) };
  const impatient = line.add({ request: { ...request, resource: short }, call, settle: () => undefined });
  expect(watcher.longestPauseMs()).toBe(20);
  line.leave(impatient, { reason: undefined });
  expect(watcher.longestPauseMs()).toBe(settings.poll.maxMs);
});
