import short from "./jest.config.js";

// Some tests do more then: see __tests__/support/full.ts.
process.env.FULL_TESTS = "full";

/**
 * `npm run test:full`: the tests of `npm test`, and those that take their time, in `*.full.test.ts`.
 *
 * @type {import("jest").Config}
 */
export default { ...short, testPathIgnorePatterns: [], testTimeout: 600_000 };
