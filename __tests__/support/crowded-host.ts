import { lockAt } from "../../lib/protocol/addresses.js";
import type { Row } from "../../lib/protocol/row.js";
import { ManualTime } from "./manual-time.js";
import { isTake, MemoryHost } from "./memory-host.js";

type Remembered = Partial<Pick<Row, "tick" | "due" | "attempt" | "fence" | "uuid">>;

/** A host that asks for many names at once, whose rows remember something; by default, no row is taken. */
export function crowd(remembered: Remembered, { expires = 0, count = 60 } = {}) {
  const time = new ManualTime();
  const host = new MemoryHost(time);
  const names = Array.from({ length: count }, (_, number) => `job-${number}`);
  const row = { format: 1, owner: "before", expires, ttlMs: 30_000, acquired: 5, ...remembered };
  for (const name of names) host.table.plant(lockAt(name), row);
  const all = async <Answer>(ask: (name: string) => Promise<Answer>): Promise<readonly Answer[]> => {
    const answers = Promise.all(names.map(ask));
    await time.settle(answers, { stepMs: 10, withinMs: 100_000 });
    return await answers;
  };
  return { time, host, all, takes: () => host.sent.filter(isTake).length };
}
