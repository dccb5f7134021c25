/**
 * Two execution environments with the function of handler.ts, on this machine: frozen between their invocations, and short of time
 * in one. `node main.js` shows what the invocations return, and checks it.
 */

import { LockTable } from "dynamutex";
import { Carrier } from "../support/carrier.js";
import { runExample } from "../support/run-example.js";
import { Environment } from "./environment.js";

await runExample(async () => {
  await using locks = new LockTable({ tableName: process.env.TABLE_NAME ?? "locks" });
  await locks.create();
  await using carrier = new Carrier();
  const env = { CARRIER_URL: await carrier.start() };
  await using a = new Environment("a", env);
  await using b = new Environment("b", env);
  const invoke = async (environment: Environment, order: string, timeoutMs = 15_000) =>
    await environment.invoke({ order }, { timeoutMs });

  console.log(`a, order 1: ${await invoke(a, "1")}`);
  console.log(`a is frozen; locks that are held: ${await heldIn(locks)}`);
  console.log(`b, order 1: ${await invoke(b, "1")}`);
  console.log(`a, order 2: ${await invoke(a, "2")}`);

  const { arrived, release } = carrier.hold("3");
  const slow = invoke(a, "3", 4_000);
  await arrived;
  console.log("a, order 3: the carrier does not answer");
  console.log(`b, order 3: ${await invoke(b, "3", 3_000)}`);
  const gaveUp = await slow;
  const held = await heldIn(locks);
  console.log(`a, order 3: ${gaveUp}; locks that are held: ${held}`);
  release(); // it takes the parcel of the call that was given up: whoever tries again has to ask first
  console.log(`b, order 3: ${await invoke(b, "3")}`);

  const parcels = carrier.parcels.join(", ");
  console.log(`\nThe carrier has parcels for orders ${parcels}`);
  return parcels === "1, 2, 3" && held === 0;
});

async function heldIn(locks: LockTable): Promise<number> {
  let held = 0;
  for await (const _lock of locks.list()) held += 1;
  return held;
}
