import { expect, test } from "@jest/globals";
import { Bid } from "../../lib/taking/bid.js";
import { Call, FIRST_ANSWER_MS } from "../../lib/taking/call.js";
import { ManualTime } from "../support/manual-time.js";
import { MemoryHost } from "../support/memory-host.js";

const TIMES = 10;

test.each(["again", "pause"] as const)("a try sleeps within its 10 s: %s()", async (how) => {
  const time = new ManualTime();
  const { session } = new MemoryHost(time);
  const bid = new Bid(session, { call: new Call(session, "a", {}) });
  await time.advance(FIRST_ANSWER_MS - 100);
  // Each takes a step of 1 ms at least.
  for (let count = 0; count < TIMES; count += 1) await time.settle(how === "again" ? bid.again() : bid.pause(1_000));
  expect(time.elapsed).toBeLessThanOrEqual(FIRST_ANSWER_MS + TIMES);
});

test("a call that waits sleeps for as long as its pause is", async () => {
  const time = new ManualTime();
  const { session } = new MemoryHost(time);
  const bid = new Bid(session, { call: new Call(session, "a", { isPatient: true }) });
  await time.settle(bid.pause(1_000));
  expect(time.elapsed).toBe(1_000);
});
