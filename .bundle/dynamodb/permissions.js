const LOCKS = ["GetItem", "PutItem", "UpdateItem", "DeleteItem"];
const CREATE = ["DescribeTable", "CreateTable", "DescribeTimeToLive", "UpdateTimeToLive"];
export function missingPermission(action, tableName) {
    const isOfCreate = CREATE.includes(action) || action === "TagResource";
    const [what, needed] = isOfCreate ? ["create()", CREATE] : ["every lock", LOCKS];
    const also = needed.includes(action) ? "" : ", and this call that one as well";
    return (`these credentials lack the permission dynamodb:${action} on table ${tableName}: ${what} needs ${listed(needed)}${also}; ` +
        "docs/table.md in the package dynamutex has policies");
}
function listed(actions) {
    const names = actions.map((action) => `dynamodb:${action}`);
    return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
