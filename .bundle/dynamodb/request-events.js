import { publish } from "../diagnostics.js";
import { isRefusal, refusalsOf, storeFailure } from "./failures.js";
export function tell({ kind, at }, { ms, attempts, error, consumed }) {
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
function operationOf(kind) {
    if (kind === "vacate")
        return "release";
    return kind === "want" ? "mark" : kind;
}
function outcomeOf(error) {
    if (isRefusal(error) || refusalsOf(error) !== undefined)
        return "refused";
    const { throttled, answered } = storeFailure(error, { action: "", tableName: "" });
    if (throttled)
        return "throttled";
    return answered ? "failed" : "unanswered";
}
function unitsOf(kind, consumed) {
    if (consumed === undefined)
        return { readUnits: undefined, writeUnits: undefined };
    const reads = kind === "read" || kind === "query" || kind === "scan";
    let [readUnits, writeUnits] = [0, 0];
    for (const { CapacityUnits, ReadCapacityUnits, WriteCapacityUnits } of [consumed].flat()) {
        const sum = ReadCapacityUnits === undefined && WriteCapacityUnits === undefined ? (CapacityUnits ?? 0) : 0;
        readUnits += (ReadCapacityUnits ?? 0) + (reads ? sum : 0);
        writeUnits += (WriteCapacityUnits ?? 0) + (reads ? 0 : sum);
    }
    return { readUnits, writeUnits };
}
