import { inspect } from "node:util";
import { describe, expect, test } from "@jest/globals";
import {
  type HandOffOptions,
  LockConfigError,
  LockTable,
  type LockTableOptions,
  type MutexOptions,
  type SemaphoreOptions,
  systemClock,
  tableClock,
} from "../../lib/index.js";
import { mutexSettings } from "../../lib/options/mutex.js";
import { useScene } from "../support/scene.js";

const scene = useScene();

const LONGEST_MS = 2_147_483_647;

/** The refusal, which must name the option and its value. */
function refusal(act: () => unknown): LockConfigError {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(LockConfigError);
    const refused = error as LockConfigError;
    expect(refused.code).toBe("LOCK_CONFIG");
    expect(refused.message).toContain(`${refused.option}:`);
    return refused;
  }
  throw new Error("it was not refused");
}

const table = (options: object) => () => new LockTable({ tableName: "locks", ...options } as LockTableOptions);
const mutex = (options: object) => () => new LockTable({ tableName: "locks" }).mutex("name", options as MutexOptions);

describe("durations", () => {
  const NO_DURATIONS = [
    -1,
    0.5,
    1_000.5,
    Number.NaN,
    Number.NEGATIVE_INFINITY,
    LONGEST_MS + 1,
    1e12,
    "1000",
    null,
    10n,
  ];
  const FINITE = ["ttlMs", "renewEveryMs", "safetyMarginMs", "releaseWithinMs", "handOverMs"];

  test.each<readonly [string, readonly number[]]>([
    ...FINITE.map((option) => [option, [0, Number.POSITIVE_INFINITY]] as const),
    ["maxHoldMs", [0, 1, 999]],
    ["waitMs", []],
  ])("%s: what is no duration is refused for a table and for a mutex, and so is each of %p", (option, others) => {
    for (const value of [...NO_DURATIONS, ...others]) {
      for (const make of [table, mutex]) {
        const refused = refusal(make({ [option]: value }));
        expect(refused).toMatchObject({ option, value });
        expect(refused.message).toContain(String(value));
      }
    }
  });

  test("trap 7: a duration that no timer can run is refused, and the longest that one can is not", () => {
    expect(refusal(table({ ttlMs: LONGEST_MS + 1 })).message).toContain(String(LONGEST_MS));
    table({ ttlMs: LONGEST_MS })();
    mutex({ waitMs: LONGEST_MS, maxHoldMs: LONGEST_MS })();
  });

  test("a lease of less than 100 ms is refused", () => {
    expect(refusal(table({ ttlMs: 99 }))).toMatchObject({ option: "ttlMs", value: 99 });
    table({ ttlMs: 100 })();
  });

  test("waiting and holding may be endless, and waiting may be nothing", () => {
    table({ waitMs: Number.POSITIVE_INFINITY, maxHoldMs: Number.POSITIVE_INFINITY })();
    mutex({ waitMs: 0 })();
  });

  test.each([
    [{ poll: { minMs: 0 } }, "poll.minMs", 0],
    [{ poll: { maxMs: 1.5 } }, "poll.maxMs", 1.5],
    [{ poll: { minMs: Number.POSITIVE_INFINITY } }, "poll.minMs", Number.POSITIVE_INFINITY],
    [{ poll: { minMs: 500, maxMs: 400 } }, "poll.minMs", 500],
    [{ poll: { mniMs: 500 } }, "poll.mniMs", 500],
    [{ poll: 50 }, "poll", 50],
  ])("%p is refused", (options, option, value) => {
    for (const make of [table, mutex]) expect(refusal(make(options))).toMatchObject({ option, value });
  });
});

describe("seconds that are given for milliseconds are asked about", () => {
  const locks = new LockTable({ tableName: "locks" });
  const tick = (everyMs: number) => locks.mutex("name").tryRun(() => 1, { everyMs });

  test.each([60, 300, 1_800, 3_600, 86_400])("everyMs: %d", async (seconds) => {
    await expect(tick(seconds)).rejects.toThrow(`did you mean ${seconds * 1_000}?`);
    await expect(tick(seconds)).rejects.toMatchObject({ code: "LOCK_CONFIG", option: "everyMs", value: seconds });
  });

  test.each([
    ["maxHoldMs", 60],
    ["maxHoldMs", 900],
    ["maxHoldMs", 3_600],
    ["ttlMs", 30],
  ])("%s: %d", (option, seconds) => {
    for (const make of [table, mutex]) {
      expect(refusal(make({ [option]: seconds })).message).toContain(`did you mean ${seconds * 1_000}?`);
    }
  });

  test.each([1, 10, 60, 300, 900, 3_600])("a semaphore's perMs: %d", (seconds) => {
    const refused = refusal(() => locks.semaphore("name", { permits: 60, perMs: seconds }));
    expect(refused.message).toContain(`did you mean ${seconds * 1_000}?`);
    expect(refused).toMatchObject({ option: "perMs", value: seconds });
  });

  test.each([100, 250, 500, 901, 1_000])("and a rate per %d ms is not", (perMs) => {
    locks.semaphore("name", { permits: 4, perMs });
  });

  test("and what somebody may mean is not", () => {
    table({ maxHoldMs: 1_000 })();
    table({ maxHoldMs: 3_601 })();
    table({ maxHoldMs: 3_600_000, ttlMs: 100 })();
    locks.semaphore("name", { permits: 4, perMs: 901 });
    expect(refusal(table({ ttlMs: 0.5 })).message).not.toContain("did you mean");
    expect(refusal(table({ ttlMs: -30 })).message).not.toContain("did you mean");
  });
});

test("a value that JSON cannot show is shown as what it is", async () => {
  const it = new LockTable({ tableName: "locks" }).mutex("name");
  const never = new Date(Number.NaN);
  await expect(it.tryLock({ once: never })).rejects.toThrow(/\(got Invalid Date\)$/);
  await expect(it.lock([{ at: never, n: Number.NaN, of: 1n }] as never)).rejects.toThrow(
    '(got [{"at":"Invalid Date","n":"NaN","of":"1n"}])',
  );
});

describe("a lease whose parts cannot work together", () => {
  test.each([
    [{ ttlMs: 1_000, safetyMarginMs: 1_000 }, "safetyMarginMs", 1_000],
    [{ ttlMs: 1_000, safetyMarginMs: 2_000 }, "safetyMarginMs", 2_000],
    [{ ttlMs: 30_000, safetyMarginMs: 59 }, "safetyMarginMs", 59],
    [{ ttlMs: 1_000, renewEveryMs: 900 }, "renewEveryMs", 900],
    [{ ttlMs: 1_000, renewEveryMs: 1_000 }, "renewEveryMs", 1_000],
    [{ ttlMs: 1_000, safetyMarginMs: 600, renewEveryMs: 400 }, "renewEveryMs", 400],
    [{ ttlMs: 1_000, safetyMarginMs: 600 }, "renewEveryMs", 500],
  ])("%p is refused", (options, option, value) => {
    for (const make of [table, mutex]) expect(refusal(make(options))).toMatchObject({ option, value });
  });

  test("the nearest to it that works is accepted", () => {
    table({ ttlMs: 1_000, renewEveryMs: 899 })();
    table({ ttlMs: 30_000, safetyMarginMs: 60 })();
  });

  test("a margin that the table gave for its own ttl is not held against a mutex with another", () => {
    const locks = new LockTable({ tableName: "locks", ttlMs: 60_000, safetyMarginMs: 20_000, renewEveryMs: 5_000 });
    locks.mutex("short", { ttlMs: 1_000 });
    expect(refusal(() => locks.mutex("short", { safetyMarginMs: 60_000 }))).toMatchObject({ option: "safetyMarginMs" });
  });
});

describe("names", () => {
  const locks = new LockTable({ tableName: "locks" });
  const prefixed = new LockTable({ tableName: "locks", keyPrefix: "ä".repeat(24) });

  test.each([[""], [undefined], [null], [7], [{}], [["a"]], [Symbol("a")]])("%p is refused", (name) => {
    expect(refusal(() => locks.mutex(name as string))).toMatchObject({ option: "name", value: name });
  });

  const MISSING = "undefined, which is a value that is missing";
  const UNREADABLE = "NaN, which is a number that could not be read or computed";

  test.each([
    [`order#${undefined}`, MISSING],
    [`${undefined}`, MISSING],
    [`order-${undefined}-eu`, MISSING],
    [`orders/${undefined}/items`, MISSING],
    [`tenant_${undefined}`, MISSING],
    [`order:${Number.NaN}`, UNREADABLE],
    [`order-${Number("x")}`, UNREADABLE],
    [`order#${{}}`, "an object"],
    [`order#${new Map()}`, "an object"],
    [`order ${Promise.resolve()}`, "a promise that was not awaited"],
  ])("%j was made of %s: all such orders would wait for one another", async (name, what) => {
    const remedy = `: was made of ${what}: one lock would stand for all of them. Use, for example, the id of what is locked (got `;
    for (const make of [
      () => locks.mutex(name),
      () => locks.semaphore(name, { permits: 2 }),
      () => locks.sharedMutex(name),
    ]) {
      const refused = refusal(make);
      expect(refused).toMatchObject({ option: "name", value: name });
      expect(refused.message).toContain(remedy);
    }
    await expect(locks.lockAll(["a", name])).rejects.toMatchObject({ option: "locks.1", value: name });
    expect(refusal(table({ keyPrefix: `${name}#` })).message).toContain(`keyPrefix${remedy}`);
  });

  test.each(["undefinedBehaviour", "order#undefined1", "bananaNaN", "nan", "NaNny", "object Object", "order#null"])(
    "%j only contains such a word, and may be meant",
    (name) => {
      locks.mutex(name);
    },
  );

  test("a name has at most 2 048 bytes, which are not characters", () => {
    locks.mutex("a".repeat(2_048));
    locks.mutex("ä".repeat(1_024));
    locks.mutex("😀".repeat(512));
    expect(refusal(() => locks.mutex("a".repeat(2_049)))).toMatchObject({ option: "name", value: "a".repeat(2_049) });
    expect(refusal(() => locks.mutex("ä".repeat(1_025))).message).toContain("2050");
    expect(refusal(() => locks.mutex("😀".repeat(513)))).toMatchObject({ option: "name" });
  });

  const HALVES = ["\ud800", "a\udc00b", "\udc00\ud800", "😀\ud83d"];

  test.each(HALVES)("half of a surrogate pair is refused: %j", async (half) => {
    const names = [half, `${half}#1`];
    for (const name of names) expect(refusal(() => locks.mutex(name))).toMatchObject({ option: "name", value: name });
    await expect(locks.lockAll(["a", half])).rejects.toMatchObject({ option: "locks.1", value: half });
    expect(refusal(table({ keyPrefix: half }))).toMatchObject({ option: "keyPrefix", value: half });
    expect(refusal(table({ owner: half }))).toMatchObject({ option: "owner", value: half });
    expect(refusal(table({ keys: { sort: half } }))).toMatchObject({ option: "keys.sort", value: half });
    expect(refusal(() => locks.list({ prefix: half }))).toMatchObject({ option: "prefix", value: half });
    for (const data of [{ text: half }, { [half]: 1 }, { in: [new Set([half])] }])
      await expect(locks.mutex("a").lock({ data })).rejects.toMatchObject({ code: "LOCK_CONFIG" });
  });

  test("because DynamoDB stores another character, and two such names would be one lock", async () => {
    await scene.put({ mark: "one" }, `${scene.name}\ud800`);
    expect(await scene.row(`${scene.name}\udfff`)).toMatchObject({ mark: "one" });
  });

  test("whole pairs are fine, and names are neither folded nor normalised", async () => {
    const host = scene.host();
    const names = ["😀", "é", "e\u0301", "É", "\ufffd", " ", "\u0000"].map((end) => `${scene.name}${end}`);
    const held = await Promise.all(names.map((name) => host.mutex(name).tryLock()));
    expect(held.map((lock) => lock?.name)).toEqual(names);
    expect(await Promise.all(names.map(async (name) => (await scene.row(name))?.uuid))).toEqual(
      held.map((lock) => lock?.uuid),
    );
    await Promise.all(held.map((lock) => lock?.unlock()));
  });

  test("prefix and name together are the lock: two prefixes of which one begins the other can share one", async () => {
    const [a, ab] = ["a", "ab"].map((end) => scene.host({ keyPrefix: `${scene.name}${end}` }));
    await using lock = await a?.mutex("bc").lock();
    expect(lock?.held).toBe(true);
    expect(await ab?.mutex("c").tryLock()).toBeNull();
    const apart = scene.host({ keyPrefix: `${scene.name}ab#` });
    await using other = await apart.mutex("c").tryLock();
    expect(other?.held).toBe(true);
  });

  test("the key prefix counts", () => {
    prefixed.mutex("a".repeat(2_000));
    expect(refusal(() => prefixed.mutex("a".repeat(2_001))).message).toContain("2049");
  });

  test("the longest name works on the table", async () => {
    const mutex = scene.host().mutex("ä".repeat(1_024));
    await using lock = await mutex.lock();
    expect(await scene.row("ä".repeat(1_024))).toMatchObject({ uuid: lock.uuid });
  });
});

describe("the table and its keys", () => {
  test.each([
    [{ tableName: "" }, "tableName", ""],
    [{ tableName: "ab" }, "tableName", "ab"],
    [{ tableName: "a".repeat(256) }, "tableName", "a".repeat(256)],
    [{ tableName: "no spaces" }, "tableName", "no spaces"],
    [{ tableName: undefined }, "tableName", undefined],
    [{ tableName: 7 }, "tableName", 7],
    [{ client: {} }, "client", {}],
    [{ client: "http://localhost" }, "client", "http://localhost"],
    [{ owner: "" }, "owner", ""],
    [{ owner: "a".repeat(1_025) }, "owner", "a".repeat(1_025)],
    [{ owner: 7 }, "owner", 7],
    [{ keyPrefix: 7 }, "keyPrefix", 7],
    [{ clock: { wall: () => undefined } }, "clock", { wall: expect.any(Function) }],
    [{ takeover: "never" }, "takeover", "never"],
    [{ autoRenew: "yes" }, "autoRenew", "yes"],
    [{ keys: { partition: "" } }, "keys.partition", ""],
    [{ keys: { sort: 7 } }, "keys.sort", 7],
    [{ keys: { ttl: "a".repeat(256) } }, "keys.ttl", "a".repeat(256)],
    [{ keys: { partition: null } }, "keys.partition", null],
    [{ keys: { hash: "pk" } }, "keys.hash", "pk"],
  ])("%p is refused", (options, option, value) => {
    const refused = refusal(table(options));
    expect(refused.option).toBe(option);
    expect(refused.value).toEqual(value);
  });

  test.each([
    [{ partition: "pk", sort: "pk" }, "keys.sort", "pk"],
    [{ partition: "sort" }, "keys.sort", "sort"],
    [{ sort: "name" }, "keys.sort", "name"],
    [{ ttl: "name" }, "keys.ttl", "name"],
    [{ sort: "sk", ttl: "sk" }, "keys.ttl", "sk"],
    [{ ttl: "expires" }, "keys.ttl", "expires"],
    [{ ttl: "permits" }, "keys.ttl", "permits"],
    [{ sort: "due" }, "keys.sort", "due"],
    [{ partition: "attempt" }, "keys.partition", "attempt"],
    [{ partition: "uuid" }, "keys.partition", "uuid"],
    [{ partition: "pk", sort: null, ttl: "pk" }, "keys.ttl", "pk"],
  ])("equal names %p are refused", (keys, option, value) => {
    expect(refusal(table({ keys }))).toMatchObject({ option, value });
  });

  test("names that only differ from ours by being another's are fine", () => {
    table({ keys: { partition: "sort", sort: "name" } })();
    table({ keys: { partition: "pk", sort: null, ttl: "sort" } })();
  });

  test("an ARN is a table's name as well", () => {
    table({ tableName: "arn:aws:dynamodb:us-east-1:123456789012:table/locks" })();
  });
});

describe("unknown options", () => {
  test.each([
    ["a table's", table({ ttl: 30_000 }), "ttl", 30_000],
    ["a mutex's", mutex({ leaseMs: 30_000 }), "leaseMs", 30_000],
    ["a table's, given to a mutex", mutex({ tableName: "locks" }), "tableName", "locks"],
  ])("%s: refused by name, with the value", (_, act, option, value) => {
    expect(refusal(act)).toMatchObject({ option, value });
  });

  test("one that belongs elsewhere is told where", async () => {
    const locks = new LockTable({ tableName: "locks" });
    const it = locks.mutex("name");
    const told = async (act: () => unknown): Promise<string> => {
      const error = await Promise.resolve()
        .then(act)
        .catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "LOCK_CONFIG" });
      return (error as Error).message;
    };
    const [ttl, waits, tables] = [{ ttlMs: 5_000 }, { waitMs: 5_000 }, { tableName: "locks" }] as const;
    const ofLeases = "locks.mutex(), new LockTable(), lockAll(), locks.semaphore(), locks.sharedMutex()";
    expect(await told(() => it.lock(ttl as object))).toBe(
      `ttlMs: is not an option here, but one of ${ofLeases} (got 5000)`,
    );
    for (const [act, where] of [
      [() => it.tryLock(ttl as object), `one of ${ofLeases} (got`],
      [() => it.run(() => 1, ttl as object), "locks.mutex()"],
      [
        () => it.tryLock(waits as object),
        "one of locks.mutex(), new LockTable(), lock(), run(), singleFlight(), lockAll(), locks.semaphore(), locks.sharedMutex() (got",
      ],
      [() => it.lock({ fencing: true } as object), "one of locks.mutex() (got true)"],
      [() => it.lock({ everyMs: 5_000 } as object), "one of tryLock(), tryRun() (got"],
      [() => locks.mutex("name", tables as object), "one of new LockTable() (got"],
      [table({ holdAtLeastMs: 5 }), "one of lock(), run(), tryLock(), tryRun(), lockAll() (got"],
      [() => locks.mutex("name", { poll: ttl as object }), "poll.ttlMs: is not an option here"],
      [table({ fencing: true }), "of each mutex"],
      [() => locks.check({ timeout: 5_000 } as object), "did you mean timeoutMs?"],
      ...["timeout", "timeoutMs", "maxWait"].map((name) => [() => it.lock({ [name]: 5_000 }), "waitMs"] as const),
    ] as const) {
      expect(await told(act)).toContain(where);
    }
    expect(await told(() => it.lock({ ttl: 5_000 } as object))).toBe(
      `ttl: is not an option here: ttlMs is one of ${ofLeases}. It is in milliseconds (got 5000)`,
    );
  });

  test.each([
    ["endpoint", "endpoint"],
    ["endPoint", "endpoint"],
    ["endpiont", "endpoint"],
    ["enpoint", "endpoint"],
    ["endpoint_url", "endpoint"],
    ["region", "region"],
    ["regoin", "region"],
    ["maxAttempts", "maxAttempts"],
  ])("%s: belongs to the client of the SDK", (given, option) => {
    const { message } = refusal(table({ [given]: "http://localhost:8000" }));
    expect(message).toContain(`pass client: new DynamoDBClient({ ${option}: … })`);
    expect(message.includes("AWS_ENDPOINT_URL_DYNAMODB")).toBe(option === "endpoint");
  });

  test.each(["credentials", "credential", "secretAccessKey", "secret_access_key", "accessKeyId", "sessionToken"])(
    "%s: is told where it belongs, and its value is not in the error",
    (given) => {
      for (const value of ["hunter2", { secretAccessKey: "hunter2" }]) {
        const error = refusal(table({ [given]: value }));
        expect(error.message).toContain("new DynamoDBClient({ credentials: … })");
        expect(inspect(error, { depth: null })).not.toContain("hunter2");
      }
    },
  );

  test("a client's options in the place of a client: their credentials are not in the error", () => {
    const error = refusal(table({ client: { credentials: { accessKeyId: "a", secretAccessKey: "hunter2" } } }));
    expect(error.option).toBe("client");
    expect(inspect(error, { depth: null })).not.toContain("hunter2");
  });

  test.each([
    [table, "tablename", "tableName"],
    [table, "tabelName", "tableName"],
    [table, "table", "tableName"],
    [table, "ttl_ms", "ttlMs"],
    [table, "waitMS", "waitMs"],
    [table, "wait", "waitMs"],
    [table, "keyPrefx", "keyPrefix"],
    [mutex, "renewEvery", "renewEveryMs"],
    [mutex, "fencin", "fencing"],
    [mutex, "leaseDuration", "ttlMs"],
    [mutex, "timeout", "waitMs"],
    [mutex, "waitTimeoutMs", "waitMs"],
    [mutex, "autoExtend", "autoRenew"],
    [table, "autoExtend", "autoRenew"],
    [mutex, "heartbeatInterval", "renewEveryMs"],
  ])("a near miss %#, %s: did you mean %s?", (make, given, meant) => {
    expect(refusal(make({ [given]: 5_000 })).message).toContain(`did you mean ${meant}?`);
  });

  test.each([
    ["pk", "partition"],
    ["partitionKey", "partition"],
    ["hash", "partition"],
    ["sk", "sort"],
    ["sortKey", "sort"],
    ["rangeKey", "sort"],
    ["ttlAttribute", "ttl"],
  ])("keys: { %s } is one that AWS calls so: did you mean %s?", (given, meant) => {
    expect(refusal(table({ keys: { [given]: "id" } })).message).toContain(`did you mean ${meant}?`);
    if (given !== "hash") expect(refusal(table({ [given]: "id" })).message).toContain("keys: { partition: …, sort: …");
  });

  test.each(["retryCount", "retries", "retryDelay", "maxRetries", "retryJitter"])(
    "%s: there is none, and the options in its place are named",
    (given) => {
      for (const make of [table, mutex]) {
        expect(refusal(make({ [given]: 5 })).message).toMatch(/no retries to count.*waitMs.*poll\.minMs/);
      }
    },
  );

  test("what a call has under another name is told for that call, and for one that has it not, who does", async () => {
    const it = new LockTable({ tableName: "locks" }).mutex("name");
    const { signal } = new AbortController();
    await expect(it.lock({ abortSignal: signal } as object)).rejects.toThrow(/^abortSignal: .*did you mean signal\?/);
    await expect(it.tryLock({ abortSignal: signal } as object)).rejects.toThrow(
      /^abortSignal: .*did you mean signal\?/,
    );
    await expect(it.lock({ autoExtend: true } as object)).rejects.toThrow(/autoRenew is one of locks\.mutex\(\)/);
    await expect(it.tryLock({ timeout: 5_000 } as object)).rejects.toThrow(/waitMs is one of .*lock\(\), run\(\)/);
    await expect(it.lock({ waitTimeoutMs: 5 } as object)).rejects.toThrow(/did you mean waitMs\?/);
    await using lock = await scene.host().mutex(scene.name).lock();
    const within = { withinMs: 5_000 } as object;
    await expect(lock.handOff(within as HandOffOptions)).rejects.toThrow(/^withinMs: .*did you mean validForMs\?/);
    await expect(lock.transactWrite([], within)).rejects.toThrow(/^withinMs: .*did you mean timeoutMs\?/);
    expect(lock.held).toBe(true);
  });

  describe("the option of others for a duration", () => {
    const it = new LockTable({ tableName: "locks" }).mutex("name");
    const told = (options: object): Promise<string> => it.lock(options).then(String, (error: Error) => error.message);

    test.each([
      [{ timeout: 5 }, "5 seconds are 5000"],
      [{ timeout: 0.5 }, "0.5 seconds are 500"],
      [{ acquireTimeout: 3_600 }, "3600 seconds are 3600000"],
      [{ waitSeconds: 1_200 }, "1200 seconds are 1200000"],
      [{ timeoutInSeconds: 5 }, "5 seconds are 5000"],
    ])("%j: ours is named with its unit, and with the value that was meant", async (options, value) => {
      expect(await told(options)).toContain(
        `: is not an option: did you mean waitMs? It is in milliseconds: ${value} (got `,
      );
    });

    test("a value that may be milliseconds is not told as seconds, and a name that says the unit needs no more", async () => {
      for (const timeout of [0, -5, 5_000, "5", Number.POSITIVE_INFINITY])
        expect(await told({ timeout })).toContain("did you mean waitMs? It is in milliseconds (got ");
      expect(await told({ timeoutMs: 5 })).toBe("timeoutMs: is not an option: did you mean waitMs? (got 5)");
      expect(await told({ abortSignal: 5 })).toContain("did you mean signal? (got");
    });

    test("is told so where another call has it, too, and where it is none of one name", async () => {
      expect(await told({ ttl: 30 })).toMatch(
        /ttlMs is one of .*\. It is in milliseconds: 30 seconds are 30000 \(got 30\)$/,
      );
      for (const pause of ["pollInterval", "retryDelay", "extendInterval"])
        expect(refusal(mutex({ [pause]: 5 })).message).toContain("in milliseconds");
    });
  });

  test.each(["foo", "x", ""])("%p is like no option: no guess is made", (given) => {
    expect(refusal(table({ [given]: 5_000 })).message).toContain("check its spelling");
  });

  test.each([null, "fast", 7, [[]]])("%p instead of options is refused", async (options) => {
    const given = options as unknown as object;
    const locks = new LockTable({ tableName: "locks" });
    const itself = expect.objectContaining({ code: "LOCK_CONFIG", option: "options", value: options });
    expect(refusal(() => new LockTable(given as LockTableOptions))).toEqual(itself);
    expect(refusal(() => locks.mutex("name", given as MutexOptions))).toEqual(itself);
    await expect(locks.mutex("name").lock(given)).rejects.toEqual(itself);
    await expect(locks.lockAll(["a", "b"], given)).rejects.toEqual(itself);
  });
});

describe("what is required", () => {
  const locks = new LockTable({ tableName: "locks" });
  const NAME = "must be a table's ARN, or its name: 3 to 255 of a-z, A-Z, 0-9, '_', '-' and '.'";

  test("is named where it is missing, and where there are no options at all", async () => {
    for (const none of [undefined, {}, { tableName: undefined }]) {
      const { message } = refusal(() => new LockTable(none as unknown as LockTableOptions));
      expect(message).toBe(`tableName: is required, and ${NAME} (got undefined)`);
    }
    const { message } = refusal(() => locks.semaphore("name", undefined as unknown as SemaphoreOptions));
    expect(message).toContain("permits: is required, and must be a whole number from 1 to 1000");
    await using lock = await scene.host().mutex(scene.name).lock();
    for (const none of [undefined, {}])
      await expect(lock.handOff(none as never)).rejects.toThrow("validForMs: is required, and must be a whole number");
    expect(lock.held).toBe(true);
  });

  test("is named where something else is given in place of options", async () => {
    expect(refusal(() => new LockTable("locks" as never)).message).toBe(
      'options: must be an object with options, of which tableName is required (got "locks")',
    );
    await using lock = await scene.host().mutex(scene.name).lock();
    await expect(lock.handOff(60_000 as never)).rejects.toThrow("of which validForMs is required (got 60000)");
  });
});

describe("clocks", () => {
  const CLOCKS: readonly [string, (options: object) => unknown, string][] = [
    ["systemClock", systemClock, "maxSkewMs"],
    ["tableClock", tableClock, "fallbackSkewMs"],
    ["tableClock", tableClock, "regionSkewMs"],
  ];

  test.each(CLOCKS)("%s refuses what is no number of milliseconds, 0 or more", (_, clock, option) => {
    for (const value of [-1, Number.NaN, Number.POSITIVE_INFINITY, "1000", null, 5n, true, [5], {}]) {
      expect(refusal(() => clock({ [option]: value }))).toMatchObject({ option, value });
    }
    for (const value of [0, 0.5, 200, undefined]) expect(clock({ [option]: value })).toBeDefined();
  });

  test.each(CLOCKS)("%s refuses what are no options of its own", (_, clock) => {
    expect(refusal(() => clock({ skew: 200 }))).toMatchObject({ option: "skew", value: 200 });
    for (const options of [null, 200, "200", []])
      expect(refusal(() => clock(options as unknown as object)).value).toBe(options);
  });
});

test("what is refused is told in words that say what to give, and never in those of the schema", async () => {
  const locks = new LockTable({ tableName: "locks" });
  const it = locks.mutex("name");
  const bad = [undefined, null, "x", 7, 7.5, 7n, Number.NaN, [], () => 1, Symbol("s"), true, {}];
  const acts: ((value: never) => unknown)[] = [
    (value) => new LockTable(value),
    (value) => locks.mutex("name", value),
    (value) => locks.mutex("name", { poll: value }),
    (value) => new LockTable({ tableName: "locks", keys: value }),
    (value) => locks.list(value),
    (value) => it.lock(value),
    (value) => it.tryLock(value),
    (value) => it.tryRun(() => 1, { once: value }),
    (value) => it.tryRun(() => 1, { everyMs: value }),
    (value) => it.forceUnlock("uuid", value),
    (value) => locks.lockAll(["a", "b"], value),
    (value) => locks.create(value),
    (value) => locks.create({ tags: value }),
    (value) => locks.create({ tags: { team: value } }),
    (value) => locks.check(value),
  ];
  // What is right after all is refused all the same: nothing is to be sent here.
  await locks.close();
  for (const act of acts) {
    for (const value of bad) {
      const told = await Promise.resolve(value as never)
        .then(act)
        .catch((error: Error) => error.message);
      expect(String(told)).not.toMatch(/expected|received|required$|invalid input/i);
    }
  }
});

test.each([[{ team: 7 }], [new Map([["team", "billing"]])], [["billing"]]])(
  "create() refuses %p as tags, which are strings under names",
  async (tags) => {
    await using locks = new LockTable({ tableName: "locks" });
    const refused = locks.create({ tags: tags as never });
    await expect(refused).rejects.toMatchObject({ code: "LOCK_CONFIG", option: "tags", value: tags });
  },
);

test("of several mistakes the name that does not exist is told first, also inside of an option", () => {
  const wrong = { tablename: "locks", ttlMs: -1 } as never;
  expect(() => new LockTable(wrong)).toThrow(/^tablename: is not an option: did you mean tableName\?/);
  const locks = new LockTable({ tableName: "locks" });
  expect(() => locks.mutex("name", { poll: { minMs: -1, maxms: 5 } as never })).toThrow(/^poll\.maxms: /);
});

describe("what one call adds", () => {
  const BAD = [
    [{ waitMs: -1 }, "waitMs", -1],
    [{ waitMs: Number.NaN }, "waitMs", Number.NaN],
    [{ signal: {} }, "signal", {}],
    [{ data: "text" }, "data", "text"],
    [{ data: ["list"] }, "data", ["list"]],
    [{ timeout: 5 }, "timeout", 5],
  ] as const;

  test.each(BAD)("lock and run refuse %p, and send nothing", async (options, option, value) => {
    const it = scene.host().mutex(scene.name);
    await expect(it.lock(options as object)).rejects.toMatchObject({ code: "LOCK_CONFIG", option, value });
    await expect(it.run(() => undefined, options as object)).rejects.toMatchObject({ code: "LOCK_CONFIG", option });
    expect(scene.proxy.requests).toEqual([]);
  });

  test.each([[{ waitMs: 0 }], [{ signal: new AbortController() }], [{ data: 7 }]])(
    "tryLock and tryRun refuse %p, and send nothing",
    async (options) => {
      const it = scene.host().mutex(scene.name);
      await expect(it.tryLock(options as object)).rejects.toMatchObject({ code: "LOCK_CONFIG" });
      await expect(it.tryRun(() => undefined, options as object)).rejects.toMatchObject({ code: "LOCK_CONFIG" });
      expect(scene.proxy.requests).toEqual([]);
    },
  );

  test.each([
    ["a match of a RegExp", { found: /(?<b>b)/.exec("abc") }, "data.found", "index"],
    ["a set with a property", { names: Object.assign(new Set(["a"]), { more: 1 }) }, "data.names", "more"],
    ["a symbol", { in: { [Symbol("key")]: 1 } }, "data.in", "Symbol(key)"],
    ["a symbol at the top", { [Symbol("key")]: 1 }, "data", "Symbol(key)"],
  ])("data of which DynamoDB would store a part alone, by %s, is refused", async (_, data, option, property) => {
    const refused = scene.host().mutex(scene.name).lock({ data });
    await expect(refused).rejects.toMatchObject({ code: "LOCK_CONFIG", option });
    await expect(refused).rejects.toThrow(`must have no property ${property}`.replace("index", ""));
    expect(scene.proxy.requests).toEqual([]);
  });

  test("data that comes back as a simpler type is stored, and is shown as it is stored", async () => {
    class Rows extends Array<number> {}
    const data = { rows: Rows.of(1, -0), bytes: Buffer.from("abc") };
    await using lock = await scene.host().mutex(scene.name).lock({ data });
    const stored = { rows: [1, 0], bytes: new Uint8Array([97, 98, 99]) };
    expect(lock.data).toStrictEqual(stored);
    expect(await scene.row()).toMatchObject({ data: { rows: [1, 0] } });
  });

  test("data that cannot be stored is refused before anything is sent", async () => {
    const it = scene.host().mutex(scene.name);
    const data = { at: new Date() };
    for (const attempt of [it.lock({ data }), it.tryLock({ data })]) {
      await expect(attempt).rejects.toMatchObject({ code: "LOCK_CONFIG", option: "data.at" });
    }
    expect(scene.proxy.requests).toEqual([]);
  });
});

describe("defaults", () => {
  test("a mutex has the defaults of the documentation", () => {
    expect(mutexSettings({})).toMatchObject({
      ttlMs: 30_000,
      renewEveryMs: 15_000,
      safetyMarginMs: 3_000,
      autoRenew: true,
      maxHoldMs: Number.POSITIVE_INFINITY,
      waitMs: Number.POSITIVE_INFINITY,
      poll: { minMs: 50, maxMs: 400 },
      handOverMs: 500,
      fair: false,
      releaseWithinMs: 5_000,
      takeover: "expired",
      fencing: false,
      perMs: 0,
    });
  });

  test("periods follow the ttl, and a mutex's options go before its table's", () => {
    expect(mutexSettings({}, { ttlMs: 10_000, waitMs: 7 })).toMatchObject({
      ttlMs: 10_000,
      renewEveryMs: 5_000,
      safetyMarginMs: 1_000,
      waitMs: 7,
    });
    expect(mutexSettings({ ttlMs: 2_000, poll: { maxMs: 60 } }, { ttlMs: 10_000, poll: { minMs: 55 } })).toMatchObject({
      ttlMs: 2_000,
      renewEveryMs: 1_000,
      safetyMarginMs: 200,
      poll: { minMs: 55, maxMs: 60 },
    });
  });

  test("undefined is the same as nothing", () => {
    table({ ttlMs: undefined, client: undefined, keys: { sort: undefined }, clock: undefined })();
    expect(mutexSettings({ ttlMs: undefined, poll: { minMs: undefined } })).toEqual(mutexSettings({}));
  });

  test("the owner is this host and process", async () => {
    await using lock = await scene.host().mutex(scene.name).lock();
    expect(lock.owner).toMatch(new RegExp(`.#${process.pid}$`));
  });

  test("making tables and mutexes sends nothing", () => {
    const locks = scene.host({ clock: systemClock() });
    for (let count = 0; count < 100; count += 1) locks.mutex(`name-${count}`);
    expect(scene.proxy.requests).toEqual([]);
  });
});
