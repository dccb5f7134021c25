import type { LockTable } from "../../../lib/index.js";

/** Short leases, renewed so often that a host which gets no processor for a second is still alive. */
export const LEASE = { ttlMs: 2_500, renewEveryMs: 250, poll: { minMs: 20, maxMs: 100 } };

interface Held {
  unlock(): Promise<void>;
}

type Take = (locks: LockTable) => Promise<Held>;

const plain: Take = (locks) => locks.mutex("name").lock();
const fenced: Take = (locks) => locks.mutex("name", { fencing: true }).lock();
const fair: Take = (locks) => locks.mutex("name", { fair: true }).lock();
const permit: Take = (locks) => locks.semaphore("name", { permits: 1 }).lock();
const shared: Take = (locks) => locks.sharedMutex("name").shared.lock();
const exclusive: Take = (locks) => locks.sharedMutex("name").exclusive.lock();
const set: Take = (locks) => locks.lockAll(["name", "other"]);

/** Their renewals go in one request, which takes an engine that has just started too long to be measured. */
export const several: Take = (locks) => locks.semaphore("name", { permits: 3 }).lock({ permits: 3 });

/** Of each kind of lock: how one process takes it, and how another asks for what that excludes. */
export const KINDS = {
  mutex: [plain, plain],
  "fenced mutex": [fenced, fenced],
  "fair mutex": [fair, fair],
  semaphore: [permit, permit],
  "shared side": [shared, exclusive],
  "exclusive side": [exclusive, shared],
  "set of locks": [set, plain],
} as const satisfies Record<string, readonly [Take, Take]>;

export type Kind = keyof typeof KINDS;
