import { expect, test } from "@jest/globals";
import { turn } from "../../support/eventually.js";
import { deferred } from "../../support/fault-proxy/deferred.js";
import { hosts, isTake, type MemoryHost } from "../../support/memory-host.js";
import type { Message } from "../../support/message.js";

// A process is suspended between a request and its answer, and its lease is over when it goes on. Nobody has taken the row, so what
// was granted with it is still its own: a tick, which is granted once, and a token, which counts once.
const TTL_MS = 2_000;
const SUSPENDED_MS = 4_000;

const isTransfer = (message: Message): boolean => message.kind === "write" && message.write.kind === "transfer";

/** Holds the answer to such a request up, while the process is suspended. */
function suspends(host: MemoryHost, which: (message: Message) => boolean, forMs = SUSPENDED_MS) {
  const arrives = deferred<void>();
  host.hold = (message) => (which(message) ? arrives.promise : undefined);
  return (skip: (ms: number) => void): void => {
    skip(forMs);
    host.hold = () => undefined;
    arrives.resolve();
  };
}

test.each([
  ["once", { once: 7 }],
  ["untilSuccess", { once: 7, untilSuccess: true }],
])("a tick whose lease was over at the answer is run all the same, under a new uuid: %s", async (_, options) => {
  const { time, one, other } = hosts();
  const goOn = suspends(one, isTake);
  const uuids: string[] = [];
  const running = one.mutex("job", { ttlMs: TTL_MS }).tryRun(({ uuid }) => void uuids.push(uuid), options);
  await turn();
  const taken = one.row("job")?.uuid;
  goOn((ms) => time.skip(ms));
  await time.settle(running);
  expect(await running).toMatchObject({ ran: true });
  expect([uuids.length, uuids.includes(taken as string)]).toEqual([1, false]);
  const again = await other.mutex("job", { ttlMs: TTL_MS }).tryRun(() => undefined, options);
  expect(again).toMatchObject({ ran: false, reason: "done" });
});

test("a token whose lease was over at the answer is resumed all the same", async () => {
  const { time, one, other } = hosts();
  const token = await (await one.mutex("job", { ttlMs: TTL_MS }).lock()).handOff({ validForMs: 60 * 60_000 });
  const goOn = suspends(other, isTransfer);
  const resuming = other.mutex("job", { ttlMs: TTL_MS }).resume(token);
  await turn();
  goOn((ms) => time.skip(ms));
  await time.settle(resuming);
  await using lock = await resuming;
  expect([lock.held, other.row("job")?.uuid]).toEqual([true, lock.uuid]);
});

// Of a lease of 2 s, 1.8 s may be used.
test.each([
  ["less than half is left", 1_000, 1_800],
  ["more than half is left", 800, 1_000],
])(
  "a lease of which %s at the answer is renewed only if its section would begin with too little",
  async (_, forMs, leftMs) => {
    const { time, one } = hosts();
    const goOn = suspends(one, isTake, forMs);
    const locking = one.mutex("job", { ttlMs: TTL_MS }).lock();
    await turn();
    goOn((ms) => time.skip(ms));
    await time.settle(locking);
    await using lock = await locking;
    expect(lock.remainingMs).toBe(leftMs);
  },
);
