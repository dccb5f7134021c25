import assert from "node:assert/strict";
import { turn } from "../../../support/eventually.js";
import { deferred } from "../../../support/fault-proxy/deferred.js";
import { ManualTime } from "../../../support/manual-time.js";
import { MemoryHost } from "../../../support/memory-host.js";

/** Hands a lock off whose deadline passes as the lease looks at it, and has to hear that it is lost. */
const time = new ManualTime();
const host = new MemoryHost(time);
const lock = await host.mutex("order-42", { ttlMs: 1_000, safetyMarginMs: 100, autoRenew: false }).lock();
await time.advance(899);
const released = deferred<void>();
host.hold = () => released.promise;
const { clock } = host.session;
const { atMost } = clock;
clock.atMost = () => atMost() + 1;
const handing = assert.rejects(lock.handOff({ validForMs: 1_000 }), { code: "LOCK_LOST" });
await turn();
clock.atMost = atMost;
released.resolve();
await time.settle(handing);
await handing;
