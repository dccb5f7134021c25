import { expect, test } from "@jest/globals";
import { LockLostError, LockStoreError } from "../../lib/errors.js";
import { mutexSettings } from "../../lib/options/mutex.js";
import { lockAt } from "../../lib/protocol/addresses.js";
import { Session } from "../../lib/session/session.js";
import { guardOf, type RowLease, rowLease, uuidsOf } from "../../lib/taking/row-lease.js";
import { record, reissue, renew, transfer, vacate } from "../../lib/taking/row-writes.js";
import { MemoryTable } from "../../lib/testing/memory-table.js";
import { ManualTime } from "../support/manual-time.js";
import { answerOf, MemoryStore } from "../support/message-store.js";
import { takeWith } from "../support/store-cases.js";

const TTL_MS = 3_000;
const AT = lockAt("name");

/** What becomes of a write: it arrives and is answered, only its answer is lost, or the write itself. */
type Fate = "answered" | "unheard" | "lost";

/** A lease on a row that the table has. Its writes have these fates, in order, and the last of them from there on. */
function leased({ tick }: { readonly tick?: number } = {}) {
  const time = new ManualTime();
  const clock = time.clock();
  const table = new MemoryTable();
  const fates: Fate[] = ["answered"];
  const store = new MemoryStore(table, async (message) => {
    const fate = fates.length > 1 ? fates.shift() : fates[0];
    const answer = fate === "lost" ? undefined : answerOf(table, message);
    if (fate !== "answered" || answer === undefined) throw new LockStoreError("no answer", { transient: true });
    return answer;
  });
  const session = new Session({ store, clock, owner: "host" });
  const attempt = tick === undefined ? undefined : 1;
  const take = takeWith({ at: AT, expires: time.now + TTL_MS, ttlMs: TTL_MS, owner: "host", tick, attempt });
  table.apply(take);
  const { uuid, expires, acquired } = take;
  const remembers = tick === undefined ? "nothing" : "tick";
  const taken = { uuid, expires, acquired, sentAt: 0, remembers, tick, attempt } as const;
  const lease = Object.freeze(rowLease(session, { at: AT, settings: mutexSettings({ ttlMs: TTL_MS }) }, taken));
  const until = (): number => 1_000;
  /** The outcome of a write, as time passes. */
  const outcomeOf = async <T>(write: () => Promise<T>, ...fated: Fate[]): Promise<T> => {
    fates.splice(0, fates.length, ...fated);
    const written = write();
    await time.settle(written);
    return await written;
  };
  const stolen = (tickOfThief?: number): void => {
    table.plant(AT, undefined);
    table.apply(takeWith({ at: AT, uuid: "thief", owner: "thief", tick: tickOfThief }));
  };
  return { time, table, session, lease, until, outcomeOf, stolen };
}

test("a write returns the next lease, and leaves the one that it was given as it was", async () => {
  const { session, table, lease, until, outcomeOf } = leased();
  const { uuid, expires } = lease;
  const renewed = await outcomeOf(() => renew(session, lease, { until }, { by: "me" }), "answered");
  expect(renewed).toMatchObject({ kind: "ok", lease: { uuid, expires: expires + 1, data: { by: "me" } } });
  const reissued = await outcomeOf(() => reissue(session, renewed.lease, { until }), "answered");
  expect(reissued).toMatchObject({ kind: "ok", lease: { expires: expires + 2, takenAs: uuid, data: { by: "me" } } });
  expect(table.row(AT)?.uuid).toBe(reissued.lease.uuid);
  expect(lease).toMatchObject({ uuid, expires, data: undefined });
  // A guard asks for a stamp after the first one under its uuid.
  expect([lease, renewed.lease, reissued.lease].map((known) => guardOf(known)?.after)).toEqual([
    undefined,
    expires,
    undefined,
  ]);
});

test("a renewal without an answer keeps until when the row is valid, and the next stamp lies after its own", async () => {
  const { session, lease, until, outcomeOf } = leased();
  const unknown = await outcomeOf(() => renew(session, lease, { until }), "unheard", "lost");
  const { validUntil, expires } = lease;
  expect(unknown).toMatchObject({ kind: "unknown", lease: { validUntil, expires, lastStamp: expires + 1 } });
  const renewed = await outcomeOf(() => renew(session, unknown.lease, { until: () => 2_000 }), "answered");
  expect(renewed.kind).toBe("ok");
  expect(renewed.lease.expires).toBeGreaterThan(unknown.lease.lastStamp);
  expect(renewed.lease.validUntil).toBeGreaterThan(validUntil);
});

type Ends = (leased_: ReturnType<typeof leased>) => Promise<{ readonly lease: RowLease }>;

test.each<[string, Ends, Fate]>([
  ["a reissue whose answer is lost", ({ session, lease, until }) => reissue(session, lease, { until }), "unheard"],
  ["a reissue that never arrives", ({ session, lease, until }) => reissue(session, lease, { until }), "lost"],
  [
    "a transfer whose answer is lost",
    async ({ session, lease, until }) => {
      const renewed = { ...lease, firstStamp: lease.firstStamp - 1 };
      return await transfer(session, renewed, { until }, { handOff: { uuid: "handed" }, ttlMs: TTL_MS });
    },
    "unheard",
  ],
])("%s leaves two uuids, and the release tries both", async (_write, change, fate) => {
  const known = leased();
  const { session, table, lease, outcomeOf } = known;
  const written = await outcomeOf(() => change(known), fate, "lost");
  expect(written).toMatchObject({ kind: "unknown", lease: { uuid: lease.uuid } });
  expect(uuidsOf(written.lease)).toHaveLength(3);
  expect((table.row(AT)?.uuid === lease.uuid) === (fate === "lost")).toBe(true);
  const released = await outcomeOf(() => vacate(session, written.lease), "answered");
  expect(released.kind).toBe("ok");
  expect(table.row(AT)?.uuid).toBeUndefined();
});

test("a release that may have been applied is a release, and a refused one tells why the lease was lost", async () => {
  const { session, lease, until, outcomeOf, stolen } = leased();
  stolen();
  expect(await outcomeOf(() => vacate(session, lease), "answered")).toMatchObject({ kind: "lost", why: "stolen" });
  // The first copy may have removed the row before the thief took it.
  expect((await outcomeOf(() => vacate(session, lease, { until }), "lost", "answered")).kind).toBe("ok");
});

test("a renewal that another holder's row refuses is lost", async () => {
  const { session, lease, until, outcomeOf, stolen } = leased();
  stolen();
  const written = await outcomeOf(() => renew(session, lease, { until }), "lost", "answered");
  expect(written).toMatchObject({ kind: "lost", why: "stolen" });
});

test("a success that another tick's row refuses is unknown after a copy without an answer, and lost otherwise", async () => {
  const { session, lease, until, outcomeOf, stolen } = leased({ tick: 7 });
  const run = { tick: 7, attempt: 1 };
  expect(await outcomeOf(() => record(session, lease, run, until), "unheard", "answered")).toEqual({ kind: "ok" });
  stolen(8);
  expect(await outcomeOf(() => record(session, lease, run, until), "answered")).toEqual({
    kind: "lost",
    why: "stolen",
  });
  const unknown = await outcomeOf(() => record(session, lease, run, until), "lost", "answered");
  expect(unknown).toEqual({ kind: "unknown", cause: expect.any(LockLostError) });
});
