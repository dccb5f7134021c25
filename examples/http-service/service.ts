/**
 * A service that ships an order once, however many requests for it come to however many hosts. `node service.js NAME`
 */

import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, Server } from "node:net";
import { LockError, LockTable } from "dynamutex";

const { CARRIER_URL, PORT = "0", TABLE_NAME = "locks" } = process.env;
const name = process.argv[2] ?? "a";
const locks = new LockTable({ tableName: TABLE_NAME, owner: name, ttlMs: 10_000 });

const server = createServer(async (request, response) => {
  const order = /^\/orders\/(\w+)\/ship$/.exec(request.url ?? "")?.[1];
  if (order === undefined) return response.writeHead(404).end();
  console.log(`${name} is asked for order ${order}`);
  const gone = goneSignal(response);
  try {
    const outcome = await ship(order, gone);
    if (!server.listening) response.setHeader("connection", "close");
    response.end(outcome);
  } catch (error) {
    if (error === gone.reason) return console.log(`${name} waits for order ${order} no longer: ${gone.reason.message}`);
    if (!(error instanceof LockError)) console.error(error);
    response.writeHead(statusOf(error), { "retry-after": "1", connection: "close" }).end();
  }
});

async function ship(order: string, gone: AbortSignal): Promise<string> {
  // The signal ends the waiting alone: a shipment that has begun is finished, though its client may have gone.
  await using lock = await locks.mutex(`order#${order}`).lock({ waitMs: 20_000, signal: gone });
  const parcel = `${CARRIER_URL}/parcels/${order}`;
  const { ok: shippedBefore } = await fetch(parcel, { signal: lock.signal });
  if (shippedBefore) return "had been shipped";
  const { ok, status } = await fetch(parcel, { method: "POST", signal: lock.signal });
  if (!ok) throw new Error(`the carrier answers ${status}`);
  return "shipped";
}

/** Aborts when the client goes away before it has its response. */
function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) gone.abort(new Error("the client has gone"));
  });
  return gone.signal;
}

function statusOf(error: unknown): number {
  if (!(error instanceof LockError)) return 500;
  if (error.code === "LOCK_TIMEOUT") return 409; // busy: the client may try again
  if (error.code === "LOCK_CLOSED" || error.code === "LOCK_STORE") return 503; // another host, or later
  return 500; // LOCK_LOST: what was done is not certain
}

server.listen(Number(PORT), () => console.log(`${name} listens on ${(server.address() as AddressInfo).port}`));

async function stop(drainMs: number): Promise<void> {
  Server.prototype.close.call(server); // no new requests; that of node:http would cut responses that are being sent
  // Who waits for a lock is answered with 503, and who has one may end. Then nothing keeps the process alive.
  await locks.close({ drainMs }).catch(console.error);
}
process.on("SIGTERM", () => stop(20_000)).on("SIGINT", () => stop(0)); // Ctrl-C: now
