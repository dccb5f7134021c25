import { expect, test } from "@jest/globals";
import { createTask } from "node-cron";
import { runCoordinator } from "../../lib/node-cron/index.js";
import { TestTable } from "../../lib/testing/index.js";
import { eventually } from "../support/eventually.js";

test("of three schedulers of node-cron, one runs each fire, and the others say that they were not elected", async () => {
  const table = new TestTable();
  const ran: string[] = [];
  const skipped: string[] = [];
  const tasks = ["a", "b", "c"].map((owner) => {
    const task = createTask("* * * * * *", ({ date }) => void ran.push(date.toISOString()), {
      name: "invoices",
      distributed: true,
      runCoordinator: runCoordinator(table.host({ owner })),
    });
    task.on("execution:skipped", ({ date, reason }) => void skipped.push(`${date.toISOString()} ${reason}`));
    return task;
  });
  for (const task of tasks) await task.start();
  // At the first fire not all of them may have started.
  const whole = () => ran.filter((fire) => skipped.filter((each) => each === `${fire} not-elected`).length === 2);
  await eventually(() => whole().length >= 2);
  for (const task of tasks) await task.destroy();
  expect(new Set(ran).size).toBe(ran.length);
});
