import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { crc32 } from "node:zlib";
import { parseWire, type WireReply } from "./wire.js";

/** An answer, on its way from the table to the client. Immutable: a fault makes another. */
export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: WireReply;
}

export function createReply(status: number, headers: IncomingHttpHeaders, text: string): Reply {
  return { status, headers, text, body: parseWire(text) };
}

/** The same reply with another body, and with the checksum that belongs to it. */
export function withBody(reply: Reply, body: WireReply): Reply {
  const text = JSON.stringify(body);
  const { "x-amz-crc32": checksum, ...headers } = reply.headers;
  if (checksum !== undefined) headers["x-amz-crc32"] = String(crc32(text));
  return { ...reply, headers, text, body };
}

export function withDate(reply: Reply, date: string | undefined): Reply {
  const { date: _, ...headers } = reply.headers;
  return { ...reply, headers: date === undefined ? headers : { ...headers, date } };
}

/** The Date header as a time; now, where there is none. */
export function dateOf(reply: Reply): Date {
  return reply.headers.date === undefined ? new Date() : new Date(reply.headers.date);
}

/** DynamoDB's own errors, as against those of the service in front of it. */
const MODELLED =
  /^(ConditionalCheckFailed|ProvisionedThroughputExceeded|ReplicatedWriteConflict|RequestLimitExceeded|ResourceNotFound|Transaction\w+|InternalServerError)/;

/** An error as DynamoDB words it: the SDK makes the exception of that name from it. */
export function errorReply(status: number, type: string, message: string, more: WireReply = {}): Reply {
  const space = MODELLED.test(type) ? "com.amazonaws.dynamodb.v20120810" : "com.amazon.coral.service";
  const text = JSON.stringify({ __type: `${space}#${type}`, message, ...more });
  const headers = {
    "content-type": "application/x-amz-json-1.0",
    "x-amzn-requestid": randomUUID(),
    "x-amz-crc32": String(crc32(text)),
    date: new Date().toUTCString(),
  };
  return createReply(status, headers, text);
}
