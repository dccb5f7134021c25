import { execFile } from "node:child_process";
import { describe, expect, it } from "@jest/globals";
import { compiled } from "../../support/compiled.js";

const example = (name: string) => compiled(new URL(`../../../examples/${name}/main.js`, import.meta.url));

interface Outcome {
  readonly code: number | string | null | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs an example on this run's engine, unless `env` says otherwise. */
function run(name: string, env: NodeJS.ProcessEnv = process.env): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(process.execPath, [example(name)], { env }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : error.code, stdout, stderr });
    });
  });
}

describe("the demo", () => {
  it("is a rehearsal in which all is as promised, in under 40 s", async () => {
    const startedAt = performance.now();
    const { code, stdout, stderr } = await run("rehearsal");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(
      /\n### Rehearsal (.*\n)+\| never two at once \| passed: (.*\n)+\| its row \| passed: is removed \|\n$/,
    );
    expect(stdout).not.toContain("\u001b"); // no colours where nobody looks
    expect(performance.now() - startedAt).toBeLessThan(40_000);
  });

  it.each(["rehearsal", "ha-cron"])("says in one message what is missing where there is no Java: %s", async (name) => {
    const { code, stdout, stderr } = await run(name, { PATH: "/nowhere" });
    expect(stderr).toMatch(
      /^DynamoDB Local cannot start: no Java was found\..*install Java 17.*DYNAMODB_ENDPOINT.*\n$/,
    );
    expect(stdout).toBe("");
    expect(code).toBe(1);
  });
});

describe("three hosts of a schedule", () => {
  it("end with their audit passed, in under 40 s", async () => {
    const startedAt = performance.now();
    const { code, stdout, stderr } = await run("ha-cron");
    expect(`${stderr}${stdout}`).toMatch(/passed.*never two at once\n.*passed.*was killed.*\n.*passed.*was woken\n$/);
    expect(code).toBe(0);
    expect(stdout).not.toContain("\u001b"); // no colours where nobody looks
    expect(performance.now() - startedAt).toBeLessThan(40_000);
  });
});
