import type { ConsumedCapacity } from "@aws-sdk/client-dynamodb";
import { type Diagnostics, publish, type RequestOperation } from "../diagnostics.js";
import type { Write } from "../protocol/writes.js";
import { isRefusal, refusalsOf, storeFailure } from "./failures.js";

type Message = Diagnostics["dynamutex:request"];

/** What a request is for. */
export interface Purpose {
  readonly kind: Exclude<RequestOperation, "release" | "mark"> | Write["kind"];
  /** The row that it is about. */
  readonly at?: { readonly name: string } | undefined;
}

/** Tells of a request that the table has answered with success, or that has thrown: `error` is as the SDK has thrown it. */
export function tell(
  { kind, at }: Purpose,
  { ms, attempts }: Sent,
  came: { readonly consumed: Consumed } | { readonly error: unknown },
): void {
  const outcome = "error" in came ? outcomeOf(came.error) : "ok";
  publish("dynamutex:request", {
    operation: operationOf(kind),
    name: at?.name,
    ms,
    attempts,
    outcome,
    cause: "error" in came && outcome !== "refused" ? came.error : undefined,
    ...unitsOf(kind, "error" in came ? undefined : came.consumed),
  });
}

interface Sent {
  readonly ms: number;
  readonly attempts: number;
}

/** One for each table, where the request is a transaction. */
type Consumed = ConsumedCapacity | readonly ConsumedCapacity[] | undefined;

/** The words of callers for the writes that have others inside. */
function operationOf(kind: Purpose["kind"]): RequestOperation {
  if (kind === "vacate") return "release";
  return kind === "want" ? "mark" : kind;
}

function outcomeOf(error: unknown): Message["outcome"] {
  if (isRefusal(error) || refusalsOf(error) !== undefined) return "refused";
  const { throttled, answered } = storeFailure(error, { action: "", tableName: "" });
  if (throttled) return "throttled";
  return answered ? "failed" : "unanswered";
}

function unitsOf(kind: Purpose["kind"], consumed: Consumed): Pick<Message, "readUnits" | "writeUnits"> {
  if (consumed === undefined) return { readUnits: undefined, writeUnits: undefined };
  const reads = kind === "read" || kind === "query" || kind === "scan";
  let [readUnits, writeUnits] = [0, 0];
  for (const { CapacityUnits, ReadCapacityUnits, WriteCapacityUnits } of [consumed].flat()) {
    // Where the two kinds are told apart, their sum is no news.
    const sum = ReadCapacityUnits === undefined && WriteCapacityUnits === undefined ? (CapacityUnits ?? 0) : 0;
    readUnits += (ReadCapacityUnits ?? 0) + (reads ? sum : 0);
    writeUnits += (WriteCapacityUnits ?? 0) + (reads ? 0 : sum);
  }
  return { readUnits, writeUnits };
}
