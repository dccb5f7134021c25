import { expect, test } from "@jest/globals";
import { createGate } from "../support/fault-proxy/gate.js";
import { ManualTime } from "../support/manual-time.js";
import { MemoryHost } from "../support/memory-host.js";

test("tries that are refused while their process stands back for others leave nothing to the calls that follow", async () => {
  const time = new ManualTime();
  const host = new MemoryHost(time);
  const other = new MemoryHost(time, { owner: "other", table: host.table });
  const mutex = host.mutex("report", { handOverMs: 100 });
  const lock = await mutex.lock();
  const othersTurn = other.mutex("report").lock();
  await time.advance(20_000);
  expect(lock.wanted).toBe(true);
  const answered = createGate();
  host.hold = ({ kind }) => (kind === "query" ? answered.released : undefined);
  const tries = [1, 2, 3].map(() => mutex.singleFlight(() => "built", { waitMs: 0 }).catch((error: unknown) => error));
  await time.advance(1);
  await lock.unlock();
  answered.release();
  for (const refused of await Promise.all(tries)) expect(refused).toMatchObject({ code: "LOCK_TIMEOUT" });
  await time.settle(othersTurn);
  await (await othersTurn).unlock();
  const built = mutex.singleFlight(() => "built");
  await time.settle(built);
  expect(await built).toBe("built");
});
