/**
 * Three workers, each of which wants six customers at once from a slow API that refuses the fourth of simultaneous calls.
 * `node main.js` shows what they get, and what the API has seen.
 */

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { LockTable } from "dynamutex";
import { Program } from "../support/program.js";
import { runExample } from "../support/run-example.js";

const AT_ONCE = 3;
const CALL_MS = 50;

let running = 0;
let most = 0;
let calls = 0;
let refused = 0;

const api = createServer(async (request, response) => {
  calls += 1;
  most = Math.max(most, ++running);
  if (running > AT_ONCE) {
    refused += 1;
    response.writeHead(429);
  }
  while (most < AT_ONCE) await sleep(5); // the first calls wait for one another, so that it is busy from the start
  await sleep(CALL_MS);
  running -= 1;
  response.end(request.url?.split("/").at(-1));
});

await runExample(async () => {
  await using locks = new LockTable({ tableName: process.env.TABLE_NAME ?? "locks" });
  await locks.create();
  await once(api.listen(0, "127.0.0.1"), "listening");
  const env = { CRM_URL: `http://127.0.0.1:${(api.address() as AddressInfo).port}` };
  const start = (name: string) => new Program(new URL("./worker.js", import.meta.url), [name], { env });
  try {
    await using a = start("a");
    await using b = start("b");
    await using c = start("c");
    const codes = await Promise.all([a, b, c].map((worker) => worker.exited));
    console.log(`\nThe API has seen ${calls} calls, at most ${most} at once, and has refused ${refused}`);
    return codes.every((code) => code === 0) && refused === 0;
  } finally {
    api.close();
  }
});
