import { AsyncLocalStorage } from "node:async_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "@jest/globals";
import { Mutex } from "../../lib/mutex.js";
import { mutexSettings } from "../../lib/options/mutex.js";
import { Sections } from "../../lib/queues/sections.js";
import { turn } from "../support/eventually.js";
import { hosts } from "../support/memory-host.js";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** How many of these can still be reached. */
async function reachable(refs: readonly WeakRef<object>[]): Promise<number> {
  for (let round = 0; round < 3; round += 1) {
    await turn();
    collect();
  }
  return refs.filter((ref) => ref.deref() !== undefined).length;
}

test.each([false, true])("a try that leaves the turn to others leaves no line behind (fair: %s)", async (fair) => {
  const { time, one, other } = hosts();
  const sections = new Sections(one.session);
  const settings: WeakRef<object>[] = [];
  for (let index = 0; index < 40; index += 1) {
    const name = `job-${index}`;
    const held = await one.mutex(name).lock();
    const waiting = other.mutex(name).lock();
    await time.advance(2_000); // so it marks the row
    await held.unlock();
    const own = mutexSettings({ fair });
    settings.push(new WeakRef(own));
    expect(await new Mutex(sections, name, own, one.flights).tryLock()).toBeNull();
    await time.advance(2_000);
    await (await waiting).unlock();
  }
  expect(await reachable(settings)).toBeLessThanOrEqual(fair ? 1 : 17); // as many as a process keeps, and the last
});

test("an empty line holds on to nothing of its callers", async () => {
  const { one } = hosts();
  const contexts = new AsyncLocalStorage<object>();
  const refs: WeakRef<object>[] = [];
  for (let index = 0; index < 20; index += 1) {
    const context = { index };
    refs.push(new WeakRef(context));
    await contexts.run(context, async () => await (await one.mutex(`used once ${index}`).lock()).unlock());
  }
  expect(await reachable(refs)).toBeLessThanOrEqual(1);
});
