export { TestTable } from "./test-table.js";
