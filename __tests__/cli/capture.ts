import { eventually } from "../support/eventually.js";
import { untilStanding } from "../support/queue.js";
import type { Scene } from "../support/scene.js";
import type { InstalledCli } from "./installed-cli.js";

/** What the command prints, by its line at the prompt. */
export type Transcript = ReadonlyMap<string, string>;

/** Fills the table with locks in every state, held by several hosts, and has the command show it. */
export async function capture(cli: InstalledCli, scene: Scene): Promise<Transcript> {
  const host = (owner: string) => scene.host({ owner, tag: owner });
  const [one, two, three] = [host("web-1#4711"), host("web-2#815"), host("web-3#42")];
  // Held, with what its holder says of it; and held by one while two wait in its queue.
  await one.mutex("deploy").lock({ data: { version: "1.4.2", stage: "production" } });
  const report = { ttlMs: 60_000, fair: true };
  await one.mutex("nightly-report", report).lock();
  for (const [owner, locks] of [
    ["web-2#815", two],
    ["web-3#42", three],
  ] as const) {
    const waiting = locks.mutex("nightly-report", report).lock();
    waiting.catch(() => undefined); // the test ends first
    await untilStanding(scene, owner);
  }
  // Expired: its holder does not renew it, as if it had died.
  const dead = await two.mutex("import", { ttlMs: 500, autoRenew: false }).lock();
  await eventually(() => !dead.held);
  // Kept: free, and its row remembers a tick.
  await (await three.mutex("send-invoices").tryLock({ everyMs: 3_600_000 }))?.unlock();
  // Nobody's, and blocked: unlocked by force, and parked.
  const forced = await two.mutex("migrate", { ttlMs: 120_000 }).lock();
  await three.mutex("migrate").forceUnlock(forced.uuid);
  await (await three.mutex("clean-up").lock({ holdAtLeastMs: 300_000 })).unlock();
  // Two of three permits: the first of one host, the second of another. Which one gets is by chance, so it takes all first.
  const crm = one.semaphore("crm-api", { permits: 3 });
  const permits = [await crm.lock(), await crm.lock(), await crm.lock()].sort((a, b) => a.permit - b.permit);
  await permits[1]?.unlock();
  await two.semaphore("crm-api", { permits: 3 }).lock();
  await permits[2]?.unlock();
  await three.sharedMutex("catalogue").shared.lock();
  // A process that has just started knows the table's time within about a second.
  await eventually(() => Date.now() > dead.expires.getTime() + 2_000);
  const env = { DYNAMUTEX_TABLE: scene.tableName };
  const printed = new Map<string, string>();
  for (const line of ["ls --include-free", "inspect nightly-report", "inspect --json deploy"]) {
    printed.set(`dynamutex ${line}`, (await cli.run(line.split(" "), { env })).stdout);
  }
  await Promise.allSettled([one, two, three].map((locks) => locks.close({ drainMs: 0 })));
  return printed;
}

/** A transcript without what differs from run to run: times, ids, the width of columns. */
export function normalised(text: string): string {
  return text
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "TIME")
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "UUID")
    .replace(/\btest-UUID\b/g, "locks")
    .replace(/\b(\d+(ms|[smhd]))+\b/g, "SPAN")
    .replace(/"leftMs":-?\d+/g, '"leftMs":MS')
    .replace(/"ttlMs":\d+/g, '"ttlMs":MS')
    .replace(/"tick":\d+/g, '"tick":MS')
    .replace(/ +/g, " ")
    .trim();
}
