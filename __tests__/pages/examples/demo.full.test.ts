import { execFile } from "node:child_process";
import { describe, expect, it } from "@jest/globals";
import { compiled } from "../../support/compiled.js";

const DEMO = compiled(new URL("../../../examples/ha-cron/main.js", import.meta.url));

interface Outcome {
  readonly code: number | string | null | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the demo on this run's engine, unless `env` says otherwise. */
function runDemo(env: NodeJS.ProcessEnv = process.env): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(process.execPath, [DEMO], { env }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : error.code, stdout, stderr });
    });
  });
}

describe("the demo", () => {
  it("ends with its audit passed, in under 40 s", async () => {
    const startedAt = performance.now();
    const { code, stdout, stderr } = await runDemo();
    expect(`${stderr}${stdout}`).toMatch(/passed.*never two at once\n.*passed.*was killed.*\n.*passed.*was woken\n$/);
    expect(code).toBe(0);
    expect(stdout).not.toContain("\u001b"); // no colours where nobody looks
    expect(performance.now() - startedAt).toBeLessThan(40_000);
  });

  it("says in one message what is missing where there is no Java", async () => {
    const { code, stdout, stderr } = await runDemo({ PATH: "/nowhere" });
    expect(stderr).toMatch(
      /^DynamoDB Local cannot start: no Java was found\..*install Java 17.*DYNAMODB_ENDPOINT.*\n$/,
    );
    expect(stdout).toBe("");
    expect(code).toBe(1);
  });
});
