/** A Lambda function that ships an order once, as it would be deployed, with a timeout of up to 15 s. */

import { LockTable, LockTimeoutError } from "dynamutex";

interface Context {
  readonly awsRequestId: string;
  getRemainingTimeInMillis(): number;
}

const { AWS_LAMBDA_LOG_STREAM_NAME, CARRIER_URL, TABLE_NAME = "locks" } = process.env;

/** What is needed after the section: to release the lock, for `releaseWithinMs` at most, and to answer. */
const RESERVE_MS = 2_000;

// One for all invocations of an environment. The lease outlasts the function's timeout, so no section needs a renewal.
const locks = new LockTable({
  tableName: TABLE_NAME,
  owner: AWS_LAMBDA_LOG_STREAM_NAME,
  ttlMs: 20_000,
  autoRenew: false,
  releaseWithinMs: 1_500,
});

export async function handler({ order }: { readonly order: string }, context: Context) {
  const availableMs = Math.max(0, context.getRemainingTimeInMillis() - RESERVE_MS);
  const options = {
    waitMs: Math.floor(availableMs / 2),
    signal: AbortSignal.timeout(availableMs), // ends the section as well, before Lambda ends the process
    data: { request: context.awsRequestId },
  };
  try {
    const body = await locks.mutex(`order#${order}`).run((lock) => ship(order, lock.signal), options);
    return { statusCode: 200, body };
  } catch (error) {
    if (!(error instanceof LockTimeoutError)) throw error; // the invocation fails, and its event is delivered again
    return { statusCode: 409, body: `busy with request ${error.holder?.data?.request}` };
  }
}

async function ship(order: string, signal: AbortSignal): Promise<string> {
  const parcel = `${CARRIER_URL}/parcels/${order}`;
  const { ok: shippedBefore } = await fetch(parcel, { signal });
  if (shippedBefore) return "had been shipped";
  const { ok, status } = await fetch(parcel, { method: "POST", signal });
  if (!ok) throw new Error(`the carrier answers ${status}`);
  return "shipped";
}
