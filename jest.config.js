/**
 * Jest runs what the shipping compiler emitted: `npm test` compiles lib, __tests__ and examples into .jest first. The tests
 * that take their time are in `*.full.test.ts`: see jest.full.config.js.
 *
 * @type {import("jest").Config}
 */
export default {
  roots: ["<rootDir>/.jest/__tests__"],
  testMatch: ["**/*.test.js"],
  testPathIgnorePatterns: ["\\.full\\.test\\.js$"],
  reporters: ["default", "<rootDir>/.ci/progress.js"],
  testEnvironment: "node",
  transform: {},
  // Examples import the package by its name.
  moduleNameMapper: {
    "^dynamutex$": "<rootDir>/.jest/lib/index.js",
    "^dynamutex/([\\w-]+)$": "<rootDir>/.jest/lib/$1/index.js",
  },
  setupFiles: ["<rootDir>/.jest/__tests__/support/keep-channels.js"],
  globalSetup: "<rootDir>/.jest/__tests__/support/global-setup.js",
  globalTeardown: "<rootDir>/.jest/__tests__/support/global-teardown.js",
  // It ends a test that hangs, and no other, however slow the machine is. So tests have none of their own.
  testTimeout: 120_000,
  maxWorkers: 2,
  coverageProvider: "v8",
  collectCoverageFrom: ["<rootDir>/.jest/lib/**/*.js"],
  coverageDirectory: "<rootDir>/coverage",
};
