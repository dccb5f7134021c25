/**
 * A worker that fetches customers from an API which takes three calls at a time, from all workers together.
 * `node worker.js NAME`
 */

import { LockTable } from "dynamutex";

const { CRM_URL, TABLE_NAME = "locks" } = process.env;
const name = process.argv[2] ?? "a";
await using locks = new LockTable({ tableName: TABLE_NAME, owner: name, ttlMs: 10_000 });
const crm = locks.semaphore("crm-api", { permits: 3 });

async function fetchCustomer(customer: number): Promise<string> {
  return await crm.run(
    async ({ signal }) => {
      const response = await fetch(`${CRM_URL}/customers/${name}${customer}`, { signal });
      if (!response.ok) throw new Error(`the CRM answers ${response.status}`);
      return await response.text();
    },
    { waitMs: 60_000 },
  );
}

const customers = await Promise.all([1, 2, 3, 4, 5, 6].map(fetchCustomer));
console.log(`${name} has ${customers.join(" ")}`);
