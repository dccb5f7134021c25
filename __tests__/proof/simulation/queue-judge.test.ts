import { describe, expect, it } from "@jest/globals";
import { LOCK_SORT, lockAt, MUTEX_QUEUE, placeAt, placesOf } from "../../../lib/protocol/addresses.js";
import type { Take, Write } from "../../../lib/protocol/writes.js";
import { MemoryTable } from "../../../lib/testing/memory-table.js";
import type { Message } from "../../support/message.js";
import { answerOf } from "../../support/message-store.js";
import { Coverage } from "./coverage.js";
import { askingFor } from "./locks.js";
import { Machine } from "./machine.js";
import type { Sender } from "./network.js";
import { QueueJudge } from "./queue-judge.js";
import { FAIR_NAME } from "./schedule.js";
import { Scheduler } from "./scheduler.js";

const EPOCH = Date.UTC(2026, 10, 20, 12);
const TTL_MS = 10_000;

/** Processes whose messages arrive and are answered at once. */
function world() {
  const scheduler = new Scheduler();
  const table = new MemoryTable();
  const judge = new QueueJudge({ scheduler, table, coverage: new Coverage(), epoch: EPOCH });
  const machine = new Machine(scheduler, { aheadMs: 0, monotonicPpm: 0, wallPpm: 0 }, { epoch: EPOCH, seed: 1 });
  const nothing = () => undefined;
  const wait = (ms: number) => scheduler.run(scheduler.now + ms, () => false, nothing);
  const start = (owner: string) => {
    const sender: Sender = { owner, process: machine.start(), clock: { wall: () => undefined } };
    /** @returns the invariant that it broke. */
    const exchange = (message: Message): string | undefined => {
      const trespass = judge.sent(sender, message);
      if (trespass !== undefined) return trespass.invariant;
      const at = message.kind === "write" ? message.write.at : lockAt(FAIR_NAME);
      const before = { row: table.row(at), item: table.item(at) };
      const answer = answerOf(table, message);
      const item = table.item(at);
      const change = { at, before: before.row, after: table.row(at), item, hasChanged: item !== before.item };
      const lost = judge.arrived({ sender, message, answer, rows: [change], answered: true, duplicate: false });
      judge.heard(sender, message, answer);
      return lost;
    };
    const write = (it: Write) => exchange({ kind: "write", write: it });
    const take = (sort: string, uuid: string): Take => ({
      kind: "take",
      at: { name: FAIR_NAME, sort },
      uuid,
      expires: Math.ceil(EPOCH + scheduler.now + TTL_MS),
      ttlMs: TTL_MS,
      owner,
      acquired: EPOCH,
      knowledge: { earliest: Math.floor(EPOCH + scheduler.now) },
      remembers: "nothing",
    });
    return {
      look: () => {
        const query = { name: FAIR_NAME, first: LOCK_SORT, last: placesOf(MUTEX_QUEUE).last, limit: 3 };
        return exchange({ kind: "query", query: { ...query, consistent: true } });
      },
      stand: (ticket: bigint) => write(take(placeAt(FAIR_NAME, ticket).sort, `${owner}-place-${ticket}`)),
      sweep: (ticket: bigint, whose: string) => {
        const at = placeAt(FAIR_NAME, ticket);
        const seenExpires = table.row(at)?.expires ?? 0;
        return write({ kind: "remove", at, seenUuid: `${whose}-place-${ticket}`, seenExpires });
      },
      claim: () => write(take(LOCK_SORT, `${owner}-lock`)),
      serve: (askedAt: number) => {
        const asking = askingFor("mutex", FAIR_NAME);
        return judge.took({ asking, uuid: `${owner}-lock`, owner, process: sender.process, askedAt });
      },
    };
  };
  return { start, wait, now: () => scheduler.now };
}

describe("the judge of the fair queue", () => {
  it("lets whoever sees nobody take the lock without a ticket", () => {
    const { start } = world();
    const a = start("A");
    expect([a.look(), a.claim(), a.serve(0)]).toEqual([undefined, undefined, undefined]);
  });

  it("wants a look before a claim, and not an old one", async () => {
    const { start, wait } = world();
    const a = start("A");
    expect(a.claim()).toBe("no claim on an old look");
    a.look();
    await wait(2_990);
    expect(a.claim()).toBeUndefined();
    await wait(50);
    expect(a.claim()).toBe("no claim on an old look");
  });

  it("sees somebody who enters although a place of another was there", () => {
    const { start } = world();
    const [a, b] = [start("A"), start("B")];
    b.stand(7n);
    a.look();
    expect(a.claim()).toBe("nobody enters without a place");
  });

  it("sees a waiter overtaken by a later ticket, whichever row was written first", async () => {
    const { start, wait, now } = world();
    const [a, b] = [start("A"), start("B")];
    a.stand(9n);
    await wait(10);
    b.stand(7n);
    await wait(10);
    a.look();
    expect([a.claim(), a.serve(0)]).toEqual([undefined, "A-lock of ticket 9 overtook B-place-7 of ticket 7"]);
    expect(now()).toBe(20);
  });

  it("sees a section served before somebody who waited when it asked", async () => {
    const { start, wait, now } = world();
    const [a, b] = [start("A"), start("B")];
    a.stand(5n);
    a.look();
    a.claim();
    expect(a.serve(0)).toBeUndefined();
    b.stand(7n);
    await wait(10);
    expect(a.serve(now())).toBe("A-lock overtook B-place-7, which waited when it asked");
    expect(a.serve(0)).toBeUndefined();
  });

  it("sees a live waiter swept, and none that is over", async () => {
    const { start, wait } = world();
    const [a, b] = [start("A"), start("B")];
    a.stand(5n);
    expect(b.sweep(5n, "A")).toBe("A-place-5 is removed by B although it waits");
    a.stand(6n);
    await wait(TTL_MS + 1);
    expect(b.sweep(6n, "A")).toBeUndefined();
  });
});
