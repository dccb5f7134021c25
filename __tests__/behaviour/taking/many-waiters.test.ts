import { afterEach, expect, test } from "@jest/globals";
import type { Clock, Lockable } from "../../../lib/index.js";
import { useWarnings } from "../../support/diagnostics.js";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryHost } from "../../support/memory-host.js";

/** What every loop over an array, a set or a map calls, and every spread, once for each of its elements. */
const ITERATORS = [[], new Set(), new Map()].map((all) => Object.getPrototypeOf(all[Symbol.iterator]()));
const NEXTS = ITERATORS.map(({ next }) => next);

afterEach(() => {
  for (const [at, iterator] of ITERATORS.entries()) iterator.next = NEXTS[at];
});

/** A time that counts the steps of loops inside of its timers. */
class CountingTime extends ManualTime {
  steps = 0;
  #isInTimer = false;

  constructor() {
    super();
    const time = this;
    for (const [at, iterator] of ITERATORS.entries()) {
      iterator.next = function next(...given: unknown[]) {
        if (time.#isInTimer) time.steps += 1;
        return Reflect.apply(NEXTS[at], this, given);
      };
    }
  }

  /** The clock of a process that runs by itself, as far as the library can tell. */
  override clock(): Clock {
    const clock = super.clock();
    const counted = (ring: () => void) => () => {
      this.#isInTimer = true;
      ring();
      this.#isInTimer = false;
    };
    return { ...clock, stay: () => () => undefined, alarm: (ms, ring) => clock.alarm(ms, counted(ring)) };
  }
}

/** Long enough that nothing is renewed in the time of a test, and nobody looks for others. */
const LONG = { ttlMs: 36_000_000, handOverMs: 36_000_000 };

/** How many steps each of so many waiting calls takes by timers in 12 s, while this process holds as many locks. */
async function stepsOfEach(calls: number, lockOf: (host: MemoryHost, call: number, calls: number) => Lockable) {
  const time = new CountingTime();
  const host = new MemoryHost(time);
  const locks = Array.from({ length: calls }, (_, call) => lockOf(host, call, calls));
  const held = [];
  for (const lock of locks) held.push(await lock.lock());
  const waiting = locks.map((lock) => lock.lock({ waitMs: 3_600_000 }));
  await time.advance(1);
  time.steps = 0;
  await time.advance(12_000);
  const each = time.steps / calls;
  for (const lock of held) await lock.unlock();
  for (const lock of waiting) await (await lock).unlock();
  return each;
}

useWarnings();

test.each<[string, Parameters<typeof stepsOfEach>[1]]>([
  ["mutexes", (host, call) => host.mutex(`m-${call}`, LONG)],
  ["permits", (host, _call, permits) => host.semaphore("s", { ...LONG, permits })],
])("a call that waits does no more by timers where its process holds more locks: %s", async (_, lockOf) => {
  const [few, many] = [await stepsOfEach(20, lockOf), await stepsOfEach(80, lockOf)];
  expect(many).toBeLessThan(few + 2);
});
