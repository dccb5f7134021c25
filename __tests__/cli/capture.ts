/// <reference lib="esnext.disposable" preserve="true" />
import { LockTable, type LockTableOptions } from "../../lib/index.js";
import { eventually } from "../support/eventually.js";
import { testClient } from "../support/table.js";
import type { InstalledCli } from "./installed-cli.js";

/** What the command prints, by its line at the prompt. */
export type Transcript = ReadonlyMap<string, string>;

/** Locks in every state, held by several hosts, until it is disposed of. */
class Table implements AsyncDisposable {
  readonly #hosts: LockTable[] = [];
  readonly #tableName: string;

  constructor(tableName: string) {
    this.#tableName = tableName;
  }

  host(owner: string, options: Partial<LockTableOptions> = {}): LockTable {
    const locks = new LockTable({ tableName: this.#tableName, client: testClient(), owner, ...options });
    this.#hosts.push(locks);
    return locks;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#hosts.map((locks) => locks.close({ drainMs: 0 })));
  }
}

/** Fills a table, and has the command show it. */
export async function capture(cli: InstalledCli, tableName: string): Promise<Transcript> {
  await using table = new Table(tableName);
  const [one, two, three] = [table.host("web-1#4711"), table.host("web-2#815"), table.host("web-3#42")];
  // Held, with what its holder says of it; and held by one while two wait in its queue.
  await one.mutex("deploy").lock({ data: { version: "1.4.2", stage: "production" } });
  const report = { ttlMs: 60_000, fair: true };
  await one.mutex("nightly-report", report).lock();
  for (const host of [two, three]) {
    host
      .mutex("nightly-report", report)
      .lock()
      .catch(() => undefined);
    const isThere = async (): Promise<boolean> => {
      const state = await one.mutex("nightly-report", report).inspect();
      return state?.waiters.some(({ owner }) => owner === (host === two ? "web-2#815" : "web-3#42")) ?? false;
    };
    while (!(await isThere()));
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
  return await transcript(cli, tableName, () => dead.expires.getTime());
}

async function transcript(cli: InstalledCli, tableName: string, deadAt: () => number): Promise<Transcript> {
  const options = { env: { DYNAMUTEX_TABLE: tableName } };
  // A process that has just started knows the table's time within about a second.
  await eventually(() => Date.now() > deadAt() + 2_000);
  const lines = ["ls --kept", "inspect nightly-report", "inspect --json deploy"];
  const printed = new Map<string, string>();
  for (const line of lines) printed.set(`dynamutex ${line}`, (await cli.run(line.split(" "), options)).stdout);
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
