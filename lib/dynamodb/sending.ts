import type {
  DeleteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  GetItemCommandOutput,
  PutItemCommand,
  PutItemCommandOutput,
  QueryCommand,
  ScanCommand,
  ScanCommandOutput,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import type { Clock } from "../clock.js";

export type ItemCommand =
  | GetItemCommand
  | PutItemCommand
  | UpdateItemCommand
  | DeleteItemCommand
  | ScanCommand
  | QueryCommand
  | TransactWriteItemsCommand;

/** What the store reads of a reply. The client of somebody's test may leave out anything. */
export type Reply =
  | (Partial<Pick<GetItemCommandOutput, "Item" | "$metadata">> &
      Pick<PutItemCommandOutput, "Attributes"> &
      Pick<ScanCommandOutput, "Items" | "LastEvaluatedKey">)
  | undefined;

/** Sends one request, and lets the clock hear when it left and what time the table's reply shows. */
export function send(
  client: DynamoDBClient,
  command: ItemCommand,
  signal: AbortSignal,
  listen: Clock["listen"],
): Promise<Reply> {
  // On the command's own stack, because a caller's client must stay as it is.
  if (listen !== undefined) listening(command as GetItemCommand, listen);
  return client.send(command as GetItemCommand, { abortSignal: signal });
}

/** Innermost of all: around each attempt alone, and before a body is read or an error made of the reply. */
function listening(command: GetItemCommand, listen: NonNullable<Clock["listen"]>): void {
  command.middlewareStack.add(
    (next) => async (args) => {
      const heard = listen();
      const result = await next(args);
      const { headers } = result.response as { readonly headers?: Record<string, string> };
      // Somebody else's reply, such as a gateway's error page, has somebody else's date.
      if (headers !== undefined && isTable(headers)) heard(headers.date);
      return result;
    },
    { step: "deserialize", priority: "low", name: "dynamutexListening" },
  );
}

function isTable(headers: Readonly<Record<string, string>>): boolean {
  return (
    headers["x-amzn-requestid"] !== undefined || headers["content-type"]?.startsWith("application/x-amz-json") === true
  );
}
