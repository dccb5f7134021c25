import { expect, test } from "@jest/globals";
import { LockStoreError } from "../../../lib/errors.js";
import type { Mutex } from "../../../lib/mutex.js";
import { LOCK_SORT } from "../../../lib/protocol/addresses.js";
import { takesOf } from "../../proof/simulation/message.js";
import { hang, resetBefore } from "../../support/fault-proxy.js";
import { ManualTime } from "../../support/manual-time.js";
import { hosts } from "../../support/memory-host.js";
import type { Message } from "../../support/message.js";
import { useScene } from "../../support/scene.js";
import { timedOut } from "../../support/settled.js";

// A short lease is asked for again and again, by claims of which the last one may have next to no time left.
const scene = useScene();

const FOREVER = { times: Number.POSITIVE_INFINITY };

function host(ttlMs: number) {
  const time = new ManualTime();
  return { time, mutex: scene.host({ clock: time.clock() }).mutex(scene.name, { ttlMs }) };
}

async function failureOf(time: ManualTime, ask: () => Promise<unknown>): Promise<Error> {
  const call = ask();
  await timedOut(time, call);
  return (await call.catch((error: unknown) => error)) as Error;
}

/** Breaks the connection under the first put of a call, and hangs from then on; the call has heard of the break. */
async function broken(ask: () => Promise<unknown>): Promise<() => Promise<unknown>> {
  const reset = scene.proxy.on("PutItem", resetBefore());
  scene.proxy.on("PutItem", hang(), FOREVER);
  const call = ask();
  call.catch(() => undefined);
  await reset.done;
  await scene.quiet();
  return () => call;
}

/** A table that nobody listens at: each attempt hears so after a few ms. */
function refusing(ttlMs: number) {
  const { time, one } = hosts();
  one.fate = async () => {
    await time.clock().sleep(5);
    throw new LockStoreError("connect ECONNREFUSED", { transient: true, answered: false });
  };
  return { time, mutex: one.mutex("name", { ttlMs }) };
}

test("trap 35: a table that refuses connections is told as that, however little time is left for the last claim", async () => {
  const told = new Set<string>();
  for (const ttlMs of [100, 283, 466, 1_137]) {
    for (const call of [(mutex: Mutex) => mutex.tryLock(), (mutex: Mutex) => mutex.lock()]) {
      const { time, mutex } = refusing(ttlMs);
      told.add((await failureOf(time, () => call(mutex))).message);
      expect(time.elapsed).toBeLessThanOrEqual(10_000);
    }
  }
  expect([...told]).toEqual(["connect ECONNREFUSED"]);
});

test("trap 35: a table that breaks connections, and then hangs, is told with the break as the cause and the whole time", async () => {
  const { time, mutex } = host(1_000);
  const failure = await failureOf(time, await broken(() => mutex.tryLock()));
  // The claims of one lease follow one another: the break was in the first of them.
  expect(failure.message).toMatch(
    /^No answer from the table in \d\d attempts within (9\d\d\d|10000) ms; the last failure before that: /,
  );
  expect(failure).toMatchObject({ cause: { code: "LOCK_STORE", cause: { code: "ECONNRESET" } } });
});

test("trap 35: a table that only hangs is told with the whole time, and what to check", async () => {
  const { time, mutex } = host(1_000);
  scene.proxy.partition(undefined, "hang");
  const failure = await failureOf(time, () => mutex.tryLock());
  expect(failure.message).toMatch(
    /^No answer from the table in \d\d attempts within (9\d\d\d|10000) ms: check its region/,
  );
});

test("trap 35: a wait that ends without an answer has the last failure that was no timeout as its cause", async () => {
  const { time, mutex } = host(1_000);
  const failure = await failureOf(time, await broken(() => mutex.lock({ waitMs: 3_000 })));
  expect(failure).toMatchObject({
    code: "LOCK_STORE",
    message: expect.stringContaining("No answer"),
    cause: { code: "LOCK_STORE", cause: { code: "ECONNRESET" } },
  });
});

test("a fair wait whose claims get no answer ends with that, although its looks are answered", async () => {
  const { time, other } = hosts();
  const isClaim = (message: Message): boolean => takesOf(message).some(({ at }) => at.sort === LOCK_SORT);
  other.fate = (message) => (isClaim(message) ? "lost" : "answered");
  const failure = await failureOf(time, () =>
    other.mutex("name", { fair: true, ttlMs: 30_000 }).lock({ waitMs: 8_000 }),
  );
  expect(failure).toMatchObject({ code: "LOCK_STORE", message: expect.stringContaining("No answer") });
});
