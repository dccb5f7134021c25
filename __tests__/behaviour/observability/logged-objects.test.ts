import { inspect } from "node:util";
import { describe, expect, test } from "@jest/globals";
import { TestTable } from "../../../lib/testing/index.js";

/** A host of a table whose time stands still. */
function host() {
  const table = new TestTable({ time: "manual", startAt: new Date("2030-01-01T00:00:00Z") });
  return table.host({ owner: "host-a" });
}

const [ACQUIRED, EXPIRES] = ["2030-01-01T00:00:00.000Z", "2030-01-01T00:00:30.000Z"];
const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** Words of what the library keeps inside. */
const INSIDES = /session|lease|store|settings|scheduler|controller|onLost/i;

describe("what a log shows", () => {
  test("of a lock: its name, who holds it and until when, with a token as a string", async () => {
    const lock = await host()
      .mutex("report", { fencing: true })
      .lock({ data: { secret: 1n } });
    const { uuid } = lock;
    const shown = { name: "report", held: true, owner: "host-a", uuid, acquired: ACQUIRED, expires: EXPIRES };
    expect(json(lock)).toEqual({ ...shown, fencingToken: `${lock.fencingToken}` });
    expect(inspect(lock)).toMatch(/^Lock \{\s+name: 'report',\s+held: true,\s+owner: 'host-a',/);
    expect(inspect(lock, { depth: null })).toContain(`expires: ${EXPIRES}`);
    expect(inspect(lock, { depth: null })).not.toMatch(INSIDES);
    await lock.unlock();
    expect(json(lock)).toMatchObject({ name: "report", held: false });
  });

  test("of a permit and of a tick, their numbers as well", async () => {
    const locks = host();
    expect(json(await locks.semaphore("crm", { permits: 2 }).lock())).toMatchObject({
      name: "crm",
      permit: expect.any(Number),
    });
    const ticked = await locks.mutex("job").tryRun((lock) => json(lock), { once: 7, untilSuccess: true });
    expect(ticked).toMatchObject({ value: { name: "job", tick: 7, attempt: 1 } });
  });

  test("of a set, those of its locks", async () => {
    const set = await host().lockAll(["a", "b"]);
    expect(json(set)).toMatchObject({ held: true, locks: [{ name: "a", held: true }, { name: "b" }] });
    expect(inspect(set)).toMatch(/^LockSet \{\s+held: true,\s+locks: \[/);
  });

  test("of what can be locked: its name, and whether this process holds it, and until when", async () => {
    const locks = host();
    const { shared, exclusive } = locks.sharedMutex("name");
    const all = {
      Mutex: locks.mutex("name"),
      Semaphore: locks.semaphore("name", { permits: 2 }),
      Lockable: shared,
    };
    for (const [kind, lockable] of Object.entries(all)) {
      expect(json(lockable)).toEqual({ name: "name", held: false });
      const lock = await lockable.lock();
      expect(json(lockable)).toEqual({ name: "name", held: true, owner: "host-a", expires: EXPIRES });
      expect(inspect(lockable, { depth: null })).toBe(
        `${kind} ${inspect({ name: "name", held: true, owner: "host-a", expires: new Date(EXPIRES) })}`,
      );
      // Kinds of one name are independent.
      for (const other of [...Object.values(all), exclusive])
        if (other !== lockable) expect(json(other)).toEqual({ name: "name", held: false });
      await lock.unlock();
    }
    expect(json(locks.sharedMutex("name"))).toEqual({
      name: "name",
      shared: { name: "name", held: false },
      exclusive: { name: "name", held: false },
    });
  });

  test("of a table: its name, its owner, how many locks it holds, and whether it is closed", async () => {
    const locks = host();
    const lock = await locks.mutex("a").lock();
    const shown = { tableName: "locks", owner: "host-a", held: 1, closed: false };
    expect(json(locks)).toEqual(shown);
    expect(inspect(locks, { depth: null })).toBe(`LockTable ${inspect(shown)}`);
    await lock.unlock();
    await locks.close();
    expect(json(locks)).toEqual({ ...shown, held: 0, closed: true });
  });

  test("of an election: whether it leads, and its lock", async () => {
    const election = host()
      .mutex("leader")
      .elect(({ signal }) => new Promise<void>((end) => signal.addEventListener("abort", () => end())));
    expect(json(election)).toEqual({ name: "leader", isLeader: false });
    await new Promise((led) => setImmediate(led));
    expect(json(election)).toMatchObject({ name: "leader", isLeader: true, lock: { held: true } });
    expect(inspect(election, { depth: null })).not.toMatch(INSIDES);
    await election.resign();
  });
});
