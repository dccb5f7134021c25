import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";

/** What Node's agents tell of themselves. */
interface Agent {
  readonly maxSockets?: number;
  /** Requests that wait for a connection, by host. */
  readonly requests?: Readonly<Record<string, readonly unknown[] | undefined>>;
}

/** A request handler of the SDK's that is made of such agents. */
interface Handler {
  readonly httpHandlerConfigs?: () => { readonly httpAgent?: Agent; readonly httpsAgent?: Agent };
}

/**
 * What to do about a client all of whose connections are in use, by the figures of its agents; undefined where no request waits for
 * one. A request that waits there has not left, and looks as if the table were silent.
 */
export function crowdedPool({ config }: Partial<DynamoDBClient>): string | undefined {
  const handler = config?.requestHandler as Handler | undefined;
  const { httpAgent, httpsAgent } = handler?.httpHandlerConfigs?.() ?? {};
  for (const { requests = {}, maxSockets } of [httpsAgent, httpAgent].flatMap((agent) => agent ?? [])) {
    const waiting = Object.values(requests).reduce((sum, each = []) => sum + each.length, 0);
    if (waiting > 0)
      return (
        `all ${maxSockets} connections of the \`client\` are in use, and ${waiting} requests wait for one: give the locks a client of ` +
        "their own, or leave `client` out, or set a higher `maxSockets`"
      );
  }
  return undefined;
}
