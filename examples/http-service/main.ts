/**
 * Two hosts with the service of service.ts, and clients: many at once, one that goes away, and one whose host is shut down.
 * `node main.js` shows what they get, and checks it.
 */

import { LockTable } from "dynamutex";
import { Carrier } from "../support/carrier.js";
import { Program } from "../support/program.js";
import { runExample } from "../support/run-example.js";

await runExample(async () => {
  await using locks = new LockTable({ tableName: process.env.TABLE_NAME ?? "locks" });
  await locks.create();
  await using carrier = new Carrier();
  const env = { CARRIER_URL: await carrier.start() };
  const start = (name: string) =>
    new Program(new URL("./service.js", import.meta.url), [name], { env, onLine: () => undefined });
  await using a = start("a");
  await using b = start("b");
  const ports = await Promise.all([a, b].map(async (host) => (await host.next(/listens on (\d+)/))[1]));
  const [urlOfA, urlOfB] = ports.map((port) => `http://127.0.0.1:${port}`);

  const orders = Array.from({ length: 24 }, (_, index) => `${1 + (index % 3)}`);
  const answers = await Promise.all(
    orders.map((order, index) => ask(`${index % 2 === 0 ? urlOfA : urlOfB}/orders/${order}/ship`)),
  );
  const shipped = answers.filter((answer) => answer === "200 shipped").length;
  const before = answers.filter((answer) => answer === "200 had been shipped").length;
  console.log(`24 requests at once for 3 orders: ${shipped} shipped, ${before} had been shipped`);

  const { arrived, release } = carrier.hold("4");
  const order4 = "/orders/4/ship";
  const first = ask(urlOfA + order4);
  await arrived;
  console.log("a ships order 4, and the carrier takes its time");

  const impatient = new AbortController();
  const askedB = b.next(/asked for order 4/);
  const leftB = b.next(/^b waits for order 4 no longer.*/);
  const second = ask(urlOfB + order4, impatient.signal);
  await askedB;
  impatient.abort();
  console.log(`${await second}; ${(await leftB)[0]}`);

  const askedA = a.next(/asked for order 4/);
  const third = ask(urlOfA + order4);
  await askedA;
  a.kill("SIGTERM");
  const refused = await third;
  console.log(`a gets SIGTERM; who waits there gets ${refused}`);
  release();
  const finished = await first;
  console.log(`who has the lock there gets ${finished}; a exits with ${await a.exited}`);
  const retried = await ask(urlOfB + order4);
  console.log(`who was refused asks b, and gets ${retried}`);

  const parcels = carrier.parcels.sort().join(", ");
  console.log(`\nThe carrier has parcels for orders ${parcels}`);
  return parcels === "1, 2, 3, 4" && finished === "200 shipped" && refused.startsWith("503");
});

async function ask(url: string, signal: AbortSignal | null = null): Promise<string> {
  try {
    const response = await fetch(url, { method: "POST", signal });
    return `${response.status} ${await response.text()}`.trim();
  } catch (error) {
    if (signal?.aborted) return "a client goes away";
    throw error;
  }
}
