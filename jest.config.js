import { testProjects } from "./.ci/test-projects.js";

// `--selectProjects … full`: then the other tests do more as well, see __tests__/support/full.ts.
const isFull = process.argv.includes("full");
if (isFull) process.env.FULL_TESTS = "full";
// The SDK tells every process on Node 20 that it should be a newer one.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = "true";

/** @type {import("jest").Config} */
const common = {
  roots: ["<rootDir>/lib", "<rootDir>/__tests__", "<rootDir>/examples", "<rootDir>/bench"],
  testEnvironment: "node",
  extensionsToTreatAsEsm: [".ts"],
  transform: { "\\.ts$": "<rootDir>/.ci/jest-transform.js" },
  moduleNameMapper: {
    // Examples import the package by its name.
    "^dynamutex$": "<rootDir>/lib/index.ts",
    "^dynamutex/([\\w-]+)$": "<rootDir>/lib/$1/index.ts",
    "^(\\.{1,2}/.+)\\.js$": ["$1.ts", "$1.js"],
  },
  modulePathIgnorePatterns: ["<rootDir>/bench/node_modules"],
  setupFiles: ["<rootDir>/__tests__/support/keep-channels.ts"],
};

const engine = {
  globalSetup: "<rootDir>/__tests__/support/global-setup.js",
  globalTeardown: "<rootDir>/__tests__/support/global-teardown.js",
};

const { memory, ...others } = testProjects();
const project = (displayName, files, more = {}) => ({
  ...common,
  ...more,
  displayName,
  testMatch: files.map((file) => `<rootDir>/${file}`),
});

/** @type {import("jest").Config} */
export default {
  projects: [
    project("memory", memory),
    ...Object.entries(others).map(([displayName, files]) => project(displayName, files, engine)),
  ],
  // It ends a test that hangs, and no other, however slow the machine is. So tests have none of their own. Jest ignores
  // a timeout of a project.
  testTimeout: isFull ? 600_000 : 120_000,
  maxWorkers: 2,
  // A worker grows by what each file leaves behind in its module registry.
  workerIdleMemoryLimit: "350MB",
  coverageProvider: "v8",
  collectCoverageFrom: ["lib/**/*.ts"],
  coverageDirectory: "<rootDir>/coverage",
};
