import { contender } from "../contenders/index.js";
import { show } from "../numbers.js";
import { moneyOf, type Workload } from "../results.js";
import { unitsOfWaiter } from "./waiters-second.js";

/** Hosts that wait for one more. */
const WAITERS = 4;

export const verrou: Workload = {
  name: "verrou",
  title: "What a waiter of Verrou costs",
  async run(bench) {
    const rows: string[][] = [];
    for (const name of ["dynamutex", "verrou"] as const) {
      const units = await unitsOfWaiter(bench, name, WAITERS);
      rows.push([contender(name).title, show(units.read), show(units.write), show(moneyOf(units))]);
    }
    return {
      detail: { columns: ["a waiter's second", "RRU", "WRU", "money, RRU"], rows },
      notes: [
        `${WAITERS} hosts wait for another, 30 s leases: 15 s from 6 s after they began to wait. @verrou/core 0.5.2 on its DynamoDB store, with its own settings.`,
      ],
    };
  },
};
