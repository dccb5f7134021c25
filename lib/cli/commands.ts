/** What the commands do: loaded when one of them is used, and with it the library and the AWS SDK. */
export { check } from "./check.js";
export { createTable } from "./create-table.js";
export { inspect } from "./inspect.js";
export { ls } from "./ls.js";
export { run } from "./run.js";
export { unlock } from "./unlock.js";
