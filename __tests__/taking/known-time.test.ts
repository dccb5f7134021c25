import { expect, test } from "@jest/globals";
import { lockAt } from "../../lib/protocol/addresses.js";
import { Bid } from "../../lib/taking/bid.js";
import { Call } from "../../lib/taking/call.js";
import { type Once, periods, tickNow } from "../../lib/taking/known-time.js";
import { watch } from "../support/eventually.js";
import { ManualTime } from "../support/manual-time.js";
import { MemoryHost } from "../support/memory-host.js";

const EVERY_MS = 60_000;

test("the time that a try waits for its tick is none of the time that it has for the table", async () => {
  const time = new ManualTime();
  const { session } = new MemoryHost(time, { maxSkewMs: 2_500 });
  const once: Once = {
    ...{ kind: "named", tickAt: periods(EVERY_MS), earlyMs: 5_000 },
    inVain: { doubtfulTicks: new Map(), refused: new Set() },
  };
  await time.advance(EVERY_MS - (time.now % EVERY_MS) - 7_000);
  const call = new Call<unknown>(session, "job", {});
  const bid = new Bid(session, { call });
  const left = bid.until() - time.elapsed;
  const asking = tickNow(session, lockAt("job"), once, bid);
  const tick = watch(asking);
  await time.advance(9_499);
  expect(tick.settled).toBe(false);
  await time.advance(1);
  expect(await asking).toBe(time.now - (time.now % EVERY_MS));
  expect(bid.until() - time.elapsed).toBe(left);
});
