import { expect, test } from "@jest/globals";
import { lockAt } from "../../lib/protocol/addresses.js";
import { Call } from "../../lib/taking/call.js";
import { type Once, tickNow } from "../../lib/taking/known-time.js";
import { Wait } from "../../lib/taking/wait.js";
import { watch } from "../support/eventually.js";
import { ManualTime } from "../support/manual-time.js";
import { MemoryHost } from "../support/memory-host.js";

const EVERY_MS = 60_000;

test("a try does not wait for the next period for longer than it may wait at all", async () => {
  const time = new ManualTime();
  const { session } = new MemoryHost(time, { maxSkewMs: 2_500 });
  // Midway between bounds that are 5 s apart, a period ends.
  const untilEnds = EVERY_MS - (time.now % EVERY_MS);
  const wait = new Wait(session, { call: new Call<unknown>(session, "job", {}) });
  await time.advance(untilEnds - 1);
  wait.asker = { call: new Call<unknown>(session, "job", {}) };
  const once: Once = { kind: "period", everyMs: EVERY_MS, inVain: { doubtfulTicks: new Map(), refused: new Set() } };
  const inTime = tickNow(session, lockAt("job"), once, wait);
  await time.advance(2_600);
  expect(await inTime).toBe(time.now - (time.now % EVERY_MS));

  await time.advance(EVERY_MS - (time.now % EVERY_MS) - 9_000);
  wait.asker = { call: new Call<unknown>(session, "job", {}) };
  await time.advance(9_000); // its first answer took that long
  const late = tickNow(session, lockAt("job"), once, wait);
  const watched = watch(late);
  await time.advance(999);
  expect(watched.settled).toBe(false);
  await time.advance(1);
  await expect(late).rejects.toMatchObject({ code: "LOCK_STORE", transient: true });
});
