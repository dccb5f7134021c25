import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type Agent, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { text as readText } from "node:stream/consumers";
import { parseWire, type WireReply } from "./wire.js";

/** An answer, on its way from the table to the client. Immutable: a fault makes another. */
export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: WireReply;
}

/** The table could not be asked, or broke off. */
export class TargetError extends Error {
  override readonly name = "TargetError";
}

/** Asks the engine at `target`. @throws {@link TargetError} */
export async function ask(
  target: URL,
  agent: Agent,
  { host, connection, "accept-encoding": _, ...headers }: IncomingHttpHeaders,
  text: string,
): Promise<Reply> {
  const all = { ...headers, "content-length": Buffer.byteLength(text) };
  const request = httpRequest(target, { agent, method: "POST", headers: all }).end(text);
  try {
    const [response] = (await once(request, "response")) as [IncomingMessage];
    // From here on, the reply's own stream fails as well.
    request.on("error", () => undefined);
    const answer = await readText(response);
    return { status: response.statusCode ?? 0, headers: response.headers, text: answer, body: parseWire(answer) };
  } catch (cause) {
    throw new TargetError("the engine behind the fault proxy does not answer", { cause });
  }
}

/** The same reply with another body, and without the checksum of the first. */
export function withBody(reply: Reply, body: WireReply): Reply {
  const { "x-amz-crc32": _, ...headers } = reply.headers;
  return { ...reply, headers, text: JSON.stringify(body), body };
}

export function withDate(reply: Reply, date: string | undefined): Reply {
  const { date: _, ...headers } = reply.headers;
  return { ...reply, headers: date === undefined ? headers : { ...headers, date } };
}

/** An error as DynamoDB words it: the SDK makes the exception of that name from it. */
export function errorReply(status: number, type: string, message: string, more: WireReply = {}): Reply {
  const body = { __type: `com.amazonaws.dynamodb.v20120810#${type}`, message, ...more };
  const headers = {
    "content-type": "application/x-amz-json-1.0",
    "x-amzn-requestid": randomUUID(),
    date: new Date().toUTCString(),
  };
  return { status, headers, text: JSON.stringify(body), body };
}
