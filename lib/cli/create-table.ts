import { Failure } from "./failure.js";
import { layoutOf, openTable, type TableArguments } from "./open-table.js";
import { print, printable } from "./output.js";
import { type TableDefinition, TEMPLATES, type TemplateName } from "./templates.js";

export interface CreateTableOptions extends TableArguments {
  readonly print?: TemplateName;
}

/** Creates the table, or prints what creates it. */
export async function createTable(options: CreateTableOptions): Promise<number> {
  const { locks } = openTable(options); // which also checks the names
  await using _ = locks;
  if (options.print !== undefined) {
    print(TEMPLATES[options.print](definitionOf(options)));
    return 0;
  }
  await locks.create();
  print(`table ${printable(locks.tableName)} is ready\n`);
  return 0;
}

function definitionOf(options: TableArguments): TableDefinition {
  const { tableName, keys = {} } = layoutOf(options);
  if (tableName.startsWith("arn:")) {
    throw new Failure("--table is an ARN, and a template needs the table's name: give the part behind the last slash");
  }
  const { partition = "name", sort = "sort", ttl = "purge" } = keys;
  return { tableName, partition, sort: sort ?? undefined, ttl };
}
