import { expect, jest, test } from "@jest/globals";
import { LockTable } from "../../lib/index.js";
import { TestTable } from "../../lib/testing/index.js";

test("a process with 50 open LockTables is warned, and one that closes each is not", async () => {
  const warn = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
  const make = () => new LockTable({ tableName: "locks" });
  try {
    for (let request = 0; request < 100; request += 1) await make().close();
    // A table in memory has no connections.
    for (let each = 0; each < 100; each += 1) new TestTable().host();
    const open = Array.from({ length: 49 }, make);
    expect(warn.mock.calls.filter(([message]) => String(message).includes("LockTables"))).toEqual([]);
    open.push(make(), make());
    expect(warn.mock.calls.filter(([message]) => String(message).includes("LockTables"))).toEqual([
      [
        expect.stringMatching(/^50 LockTables are open .* table locks: make one per table .* close\(\) it/),
        "DynamutexWarning",
      ],
    ]);
    for (const locks of open) await locks.close();
  } finally {
    warn.mockRestore();
  }
});
