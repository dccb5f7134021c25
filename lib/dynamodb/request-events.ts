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

/** What came of a request. */
interface Came {
  readonly ms: number;
  readonly attempts: number;
  /** As the SDK has thrown it; undefined where the table has answered with success. */
  readonly error?: unknown;
  readonly consumed?: Consumed;
}

/** Tells of a request that has ended. */
export function tell({ kind, at }: Purpose, { ms, attempts, error, consumed }: Came): void {
  const outcome = error === undefined ? "ok" : outcomeOf(error);
  publish("dynamutex:request", {
    operation: operationOf(kind),
    name: at?.name,
    ms,
    attempts,
    outcome,
    cause: outcome === "refused" ? undefined : error,
    ...unitsOf(kind, consumed),
  });
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
