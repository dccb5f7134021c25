import type { Readable } from "node:stream";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { isSigned } from "../../../lib/dynamodb/table-sign.js";

/**
 * Makes a client fail where somebody else has answered: a client of the SDK takes any 200 for a success, so what it says of a
 * transaction that was sent by hand would be no evidence.
 */
export function believeTableAlone(client: DynamoDBClient): void {
  client.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args);
      const { headers, body } = result.response as {
        readonly headers: Readonly<Record<string, string>>;
        body: Readable;
      };
      if (isSigned(headers)) return result;
      // A body that nobody reads keeps its connection, and with it the process.
      body.destroy();
      throw new Error("somebody else has answered");
    },
    { step: "deserialize", priority: "low", name: "believeTableAlone" },
  );
}
