import short from "./jest.config.js";

/**
 * `npm run test:full`: the tests of `npm test`, and those that take their time, in `*.full.test.ts`.
 *
 * @type {import("jest").Config}
 */
export default { ...short, testPathIgnorePatterns: [] };
