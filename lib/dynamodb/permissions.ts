/** What every lock needs. */
const LOCKS = ["GetItem", "PutItem", "UpdateItem", "DeleteItem"];
/** What `create()` needs. */
const CREATE = ["DescribeTable", "CreateTable", "DescribeTimeToLive", "UpdateTimeToLive"];

/** What to grant where the permission for an action is missing: also those that would be missed next, as docs/guides/table.md has them. */
export function missingPermission(action: string, tableName: string): string {
  const isOfCreate = CREATE.includes(action) || action === "TagResource";
  const [what, needed] = isOfCreate ? ["create()", CREATE] : ["every lock", LOCKS];
  const also = needed.includes(action) ? "" : ", and this call that one as well";
  return (
    `these credentials lack the permission dynamodb:${action} on table ${tableName}: ${what} needs ${listed(needed)}${also}; ` +
    "docs/guides/table.md in the package dynamutex has policies"
  );
}

/** What to grant where it is the key that encrypts a table which refuses these credentials; undefined if it is not. */
export function refusedKey(message: string, tableName: string): string | undefined {
  if (!/\bkms\b/i.test(message)) return undefined;
  const actions = [...new Set(message.match(/\bkms:\w+/gi))];
  const needed = actions.length > 0 ? actions.join(", ") : "kms:Decrypt and kms:DescribeKey";
  return (
    `the KMS key that encrypts table ${tableName} refuses these credentials: allow ${needed} for them, in the key's policy or ` +
    "in their own; their permissions for DynamoDB may be right"
  );
}

function listed(actions: readonly string[]): string {
  const names = actions.map((action) => `dynamodb:${action}`);
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
