/**
 * A table in memory, for the tests of code that takes a `LockTable`.
 *
 * @packageDocumentation
 */

export type { ApplyWrites } from "./apply-writes.js";
export type { TestClock, TestTime } from "./test-clock.js";
export { type TestHostOptions, TestTable, type TestTableOptions } from "./test-table.js";
