import { expect, test } from "@jest/globals";
import { MemoryTable } from "../../../lib/testing/memory-table.js";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryHost } from "../../support/memory-host.js";
import type { Message } from "../../support/message.js";
import { seededRandom } from "../../support/seeded-random.js";

const TEN_MINUTES_MS = 600_000;
const ANSWER_MS = 8;
const SECTION_MS = 50;
const PAUSE_MS = 1_000;

const unitsOf = (message: Message): number => {
  if (message.kind === "writeAll") return 2 * message.takes.length;
  return message.kind === "renewAll" ? message.renewals.length : Number(message.kind === "write");
};

/**
 * One host wants all names at once, again and again, and others want each of them for a while.
 * @returns how many write units it has spent on transactions that were refused, and how many sets it got.
 */
async function contend(count: number, { holdMs, pauseMs }: { readonly holdMs: number; readonly pauseMs: number }) {
  const time = new ManualTime();
  const table = new MemoryTable();
  const clock = time.clock();
  const host = (owner: string): MemoryHost => {
    const made = new MemoryHost(time, { owner, table, random: seededRandom(1, owner) });
    made.fate = () => clock.sleep(ANSWER_MS);
    return made;
  };
  const names = Array.from({ length: count }, (_, number) => `n${number}`);
  const [others, own] = [host("others"), host("own")];
  let [isOver, sets] = [false, 0];
  const hold = async (name: string): Promise<void> => {
    const random = seededRandom(1, name);
    await clock.sleep(random() * (holdMs + pauseMs));
    while (!isOver) {
      const lock = await others.mutex(name).lock();
      await clock.sleep(holdMs * (0.5 + random()));
      await lock.unlock();
      await clock.sleep(pauseMs * (0.5 + random()));
    }
  };
  const take = async (): Promise<void> => {
    while (!isOver) {
      const set = await own.lockAll(names);
      sets += 1;
      await clock.sleep(SECTION_MS);
      await set.unlock();
      await clock.sleep(PAUSE_MS);
    }
  };
  const all = Promise.allSettled([take(), ...names.map(hold)]);
  await time.advance(TEN_MINUTES_MS);
  isOver = true;
  const transactions = own.sent.filter(({ kind }) => kind === "writeAll");
  const units = transactions.reduce((sum, message) => sum + unitsOf(message), 0);
  const closed = Promise.allSettled([own.session.close(0), others.session.close(0), all]);
  await time.settle(closed, { stepMs: 100, withinMs: 120_000 });
  return { sets, refusedUnits: units - 2 * count * sets };
}

// The numbers are those of sets that watched each refusing row in turn, on the same schedule.
test.each([
  [10, { holdMs: 600, pauseMs: 1_400 }, 15_140],
  [100, { holdMs: 600, pauseMs: 1_400 }, 24_600],
])("ten minutes of contention for %d names, %j, cost no more refused write units than %d", async (count, how, most) => {
  const { refusedUnits } = await contend(count, how);
  expect(refusedUnits).toBeLessThanOrEqual(most);
});
