import type { RecordedRequest } from "./fault-proxy.js";

/** Whether a request passes a lease on under a fresh uuid: the only write that asks for a uuid and sets another. */
export function isReissue({ body }: RecordedRequest): boolean {
  const values = body.ExpressionAttributeValues ?? {};
  return ":if_uuid" in values && ":uuid" in values;
}
