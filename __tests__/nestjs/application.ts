import type { ModuleMetadata } from "@nestjs/common";
import { Test, type TestingModule } from "@nestjs/testing";
import type { LockTable } from "../../lib/index.js";
import { getLocksToken, LockModule, type LockModuleRootOptions } from "../../lib/nestjs/index.js";
import { TableLocks } from "../../lib/table-locks.js";

/**
 * Starts an application with a host of a table in memory, or with one for each name of a table.
 *
 * @param options those of the module.
 */
export async function startApplication(
  hosts: LockTable | Readonly<Record<string, LockTable>>,
  { imports = [], ...metadata }: ModuleMetadata,
  options: Partial<LockModuleRootOptions> = {},
): Promise<TestingModule> {
  const named = hosts instanceof TableLocks ? { default: hosts } : hosts;
  const modules = Object.keys(named).map((name) => LockModule.forRoot({ tableName: "locks", ...options, name }));
  const builder = Test.createTestingModule({ ...metadata, imports: [...modules, ...imports] });
  for (const [name, host] of Object.entries(named)) builder.overrideProvider(getLocksToken(name)).useValue(host);
  const application = await builder.compile();
  return await application.init();
}
