import { createHash } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { type LockInfo, LockTimeoutError } from "../../../lib/index.js";
import { permitAt } from "../../../lib/protocol/addresses.js";
import { turn, watch } from "../../support/eventually.js";
import { hosts, isRelease, type MemoryHost } from "../../support/memory-host.js";
import { decodedToken, encodedToken } from "../../support/tokens.js";

const NAME = "order-42";
const MINUTE = 60_000;

const isLost = { code: "LOCK_LOST" };
const isNoToken = { code: "LOCK_CONFIG", option: "token" };

/** All that somebody could make of a uuid that he has seen, who has no token. */
function forgedWith(uuid: string, sort = "lock"): readonly string[] {
  const first = {
    tableName: "locks",
    keyPrefix: "",
    at: { name: NAME, sort },
    uuid,
    expires: 9e15,
    remembers: "nothing",
  };
  return [
    encodedToken(["locks", "", NAME, sort, uuid]),
    `dynamutex-1.${Buffer.from(JSON.stringify(first)).toString("base64url")}`,
  ];
}

describe("a uuid that everybody can see opens nothing", () => {
  test("trap 43: neither that of a lock that is held", async () => {
    const { one, other } = hosts();
    const lock = await one.mutex(NAME).lock();
    const uuid = (await other.mutex(NAME).inspect())?.uuid ?? "";
    expect(uuid).toBe(lock.uuid);
    const [second = "", first = ""] = forgedWith(uuid);
    await expect(other.mutex(NAME).resume(second)).rejects.toMatchObject(isLost);
    await expect(other.mutex(NAME).resume(first)).rejects.toMatchObject(isNoToken);
    await lock.extend();
    expect([lock.held, one.row(NAME)?.uuid]).toEqual([true, lock.uuid]);
  });

  test("nor of one that is handed off, which its token still resumes", async () => {
    const { one, other, third } = hosts();
    const token = await (await one.mutex(NAME).lock()).handOff({ validForMs: MINUTE });
    const uuid = (await other.mutex(NAME).inspect())?.uuid ?? "";
    for (const forged of forgedWith(uuid)) {
      await expect(other.mutex(NAME).resume(forged)).rejects.toMatchObject({ name: /LockLostError|LockConfigError/ });
    }
    expect(token).not.toContain(uuid);
    expect(JSON.stringify(decodedToken(token))).not.toContain(uuid);
    expect(JSON.stringify(one.table.rows)).not.toContain(decodedToken(token).at(-1));
    await using resumed = await third.mutex(NAME).resume(token);
    expect(resumed.held).toBe(true);
  });

  test("nor of a permit, held or handed off", async () => {
    const { one, other } = hosts();
    const [ours, theirs] = [one, other].map((host) => host.semaphore(NAME, { permits: 2 }));
    const held = await ours?.lock();
    const token = (await (await ours?.lock())?.handOff({ validForMs: MINUTE })) ?? "";
    const { holders = [] } = (await theirs?.inspect()) ?? {};
    expect(holders.map(({ handedOff }) => handedOff).sort()).toEqual([false, true]);
    for (const { uuid = "", permit } of holders) {
      const [second = "", first = ""] = forgedWith(uuid, permitAt(NAME, permit).sort);
      await expect(theirs?.resume(second)).rejects.toMatchObject(isLost);
      await expect(theirs?.resume(first)).rejects.toMatchObject(isNoToken);
    }
    expect(held?.held).toBe(true);
    await using resumed = await theirs?.resume(token);
    expect(resumed?.held).toBe(true);
  });
});

describe("a token of something else lets nobody in", () => {
  test("one of a row whose uuid is the hash of a bare secret, as some other program may write it", async () => {
    const { one, other } = hosts();
    const lock = await one.mutex(NAME).lock();
    const at = { name: NAME, sort: "lock" };
    const uuid = createHash("sha256").update("secret").digest("hex");
    one.table.plant(at, { ...one.table.item(at), uuid });
    await expect(other.mutex(NAME).resume(encodedToken(["locks", "", NAME, "lock", "secret"]))).rejects.toMatchObject(
      isLost,
    );
    await lock.unlock().catch(() => undefined);
  });

  test("one of another lock, with the name of this one", async () => {
    const { one, other } = hosts();
    await (await one.mutex(NAME).lock()).handOff({ validForMs: MINUTE });
    const foreign = decodedToken(await (await one.mutex("order-43").lock()).handOff({ validForMs: MINUTE }));
    const edited = encodedToken(foreign.with(2, NAME));
    await expect(other.mutex(NAME).resume(edited)).rejects.toMatchObject(isLost);
  });

  test("one of an earlier hand-off of this lock", async () => {
    const { time, one, other } = hosts();
    const tokens: string[] = [];
    for (let round = 0; round < 3; round += 1) {
      const lock = await one.mutex(NAME).lock();
      tokens.push(await lock.handOff({ validForMs: 1_000 }));
      if (round < 2) await time.advance(1_001);
    }
    const [first = "", second = "", third = ""] = tokens;
    for (const old of [first, second]) await expect(other.mutex(NAME).resume(old)).rejects.toMatchObject(isLost);
    await using resumed = await other.mutex(NAME).resume(third);
    expect(resumed.held).toBe(true);
  });

  test.each<readonly [string, (parts: readonly string[]) => unknown]>([
    ["with a part too many, such as a hold of its own", (parts) => [...parts, 9e15]],
    ["with another row", (parts) => [...parts, "semaphore#0001"]],
    [
      "with more rows than a lock can have",
      (parts) => [...parts, ...Array.from({ length: 200 }, (_, row) => `row#${row}`)],
    ],
    ["with a part too few", (parts) => parts.slice(1)],
    ["with a part that is no string", (parts) => parts.with(4, 7 as never)],
    ["with an object", (parts) => ({ parts })],
    ["with a million characters", (parts) => parts.with(4, "x".repeat(1_000_000))],
  ])("one that was edited, %s: nothing is sent", async (_, edit) => {
    const { one, other } = hosts();
    const token = await (await one.mutex(NAME).lock()).handOff({ validForMs: MINUTE });
    other.told();
    const edited = encodedToken(edit(decodedToken(token)));
    await expect(other.mutex(NAME).resume(edited)).rejects.toMatchObject(isNoToken);
    expect(other.told()).toEqual([]);
  });

  test.each<readonly [string, (token: string) => unknown]>([
    ["that lacks its end", (token) => token.slice(0, -2)],
    ["that lacks its beginning", (token) => token.slice(1)],
    ["with a space before it", (token) => ` ${token}`],
    ["in quotes", (token) => JSON.stringify(token)],
    ["in an object", (token) => ({ token })],
  ])("one %s is refused, and does not show its secret", async (_, spoil) => {
    const { one, other } = hosts();
    const token = await (await one.mutex(NAME).lock()).handOff({ validForMs: MINUTE });
    const error = await other
      .mutex(NAME)
      .resume(spoil(token) as string)
      .catch((cause: unknown) => cause);
    expect(error).toMatchObject(isNoToken);
    expect(`${error}${JSON.stringify(error)}`).not.toContain(token.slice(20, 40));
  });
});

describe("what goes along is on the row, and no token can say otherwise", () => {
  test("trap 44: the hold, which the row keeps while it is resumed", async () => {
    const { time, one, other, third } = hosts();
    const lock = await one.mutex(NAME).lock({ holdAtLeastMs: 20_000 });
    const resumed = await other.mutex(NAME).resume(await lock.handOff({ validForMs: MINUTE }));
    expect(other.row(NAME)?.handOff).toMatchObject({ heldUntil: expect.any(Number), heldForMs: 20_000 });
    const again = await third.mutex(NAME).resume(await resumed.handOff({ validForMs: MINUTE }));
    await again.unlock();
    await time.advance(19_999);
    expect(await one.mutex(NAME).tryLock()).toBeNull();
    await time.advance(2);
    expect(await one.mutex(NAME).tryLock()).not.toBeNull();
  });

  test("the tick, which stays without a purge date", async () => {
    const { one, other } = hosts();
    const lock = await one.mutex(NAME).tryLock({ once: 7 });
    const resumed = await other.mutex(NAME).resume((await lock?.handOff({ validForMs: MINUTE })) ?? "");
    expect(resumed.tick).toBe(7);
    const item = () => one.table.item({ name: NAME, sort: "lock" });
    expect(item()).not.toHaveProperty("purge");
    await resumed.extend();
    await resumed.unlock();
    expect(item()).toMatchObject({ tick: 7, expires: 0 });
    expect(item()).not.toHaveProperty("purge");
  });

  test("a mark that an older process has left there names another uuid, and counts for nothing", async () => {
    const { one, other } = hosts();
    const at = { name: NAME, sort: "lock" };
    const token = await (await one.mutex(NAME).tryLock({ once: 7 }))?.handOff({ validForMs: MINUTE });
    const left = one.table.item(at)?.handOff;
    await (await other.mutex(NAME).resume(token ?? "")).unlock();
    const lock = await one.mutex(NAME).lock();
    one.table.plant(at, { ...one.table.item(at), handOff: left });
    expect(await other.mutex(NAME).inspect()).toMatchObject({ uuid: lock.uuid, handedOff: false });
  });

  test.each([
    7,
    "handed off",
    { uuid: 7 },
    { uuid: "x", heldUntil: "never" },
    { uuid: "x", heldForMs: 9e15 },
    [],
    null,
  ])("a mark that is none is no fault of its row: %j", async (handOff) => {
    const { one, other } = hosts();
    const lock = await one.mutex(NAME).lock();
    const at = { name: NAME, sort: "lock" };
    one.table.plant(at, { ...one.table.item(at), handOff });
    expect(await other.mutex(NAME).inspect()).toMatchObject({ uuid: lock.uuid, handedOff: false });
    await lock.unlock();
  });
});

describe("a lock that is handed off is shown as that", () => {
  async function infosOf(host: MemoryHost) {
    const observed = await host.mutex(NAME).observe().next();
    const timeout = await host
      .mutex(NAME)
      .lock({ waitMs: 0 })
      .catch((error: unknown) => error);
    const missed = timeout instanceof LockTimeoutError ? timeout : undefined;
    const infos: readonly (LockInfo | null | undefined)[] = [
      await host.mutex(NAME).inspect(),
      observed.value,
      missed?.holder,
    ];
    return { handedOff: infos.map((info) => info?.handedOff), message: missed?.message };
  }

  test("by inspect(), observe() and a wait that timed out; and as held before, and once it is resumed", async () => {
    const { one, other, third } = hosts();
    const lock = await one.mutex(NAME).lock();
    expect(await infosOf(third)).toMatchObject({ handedOff: [false, false, false], message: /held by one/ });
    const token = await lock.handOff({ validForMs: MINUTE });
    expect(await infosOf(third)).toMatchObject({ handedOff: [true, true, true], message: /handed off by one/ });
    const resumed = await other.mutex(NAME).resume(token);
    expect(await infosOf(third)).toMatchObject({ handedOff: [false, false, false], message: /held by other/ });
    await resumed.unlock();
  });

  test("to an observer, as a change of its own, from the holder before and to the one after", async () => {
    const { time, one, other, third } = hosts();
    const seen: (string | null)[] = [];
    void (async () => {
      for await (const holder of third.mutex(NAME).observe())
        seen.push(holder && `${holder.owner}${holder.handedOff ? ", handed off" : ""}`);
    })();
    await turn();
    const lock = await one.mutex(NAME).lock();
    await time.advance(2_000);
    const token = await lock.handOff({ validForMs: MINUTE });
    await time.advance(2_000);
    const resumed = await other.mutex(NAME).resume(token);
    await time.advance(2_000);
    await resumed.unlock();
    await time.advance(2_000);
    expect(seen).toEqual([null, "one", "one, handed off", "other", null]);
  });
});

test("a resume that was given up keeps to the hold that it has read", async () => {
  const { time, one, other, third } = hosts();
  const lock = await one.mutex(NAME).lock({ holdAtLeastMs: 50_000 });
  const token = await lock.handOff({ validForMs: MINUTE });
  other.fate = (message) => (message.kind === "write" && !isRelease(message) ? "reply lost" : "answered");
  const resuming = watch(
    other
      .mutex(NAME)
      .resume(token)
      .catch((error: unknown) => error),
  );
  await time.advanceUntil(() => resuming.settled && one.row(NAME)?.uuid === undefined);
  expect(await third.mutex(NAME).tryLock()).toBeNull();
  await time.advance(50_001);
  expect(await third.mutex(NAME).tryLock()).not.toBeNull();
});
