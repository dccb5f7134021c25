/// <reference lib="esnext.disposable" preserve="true" />
import { execFile } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Program } from "../../examples/support/program.js";
import { consumerEnv } from "../support/consumer-folder.js";
import { eventually } from "../support/eventually.js";
import { createTestTable } from "../support/table.js";
import { type NestFolder, nestFolder, VERSIONS } from "./nest-folder.js";

const run = promisify(execFile);

describe.each(VERSIONS)("with NestJS $version, in a project of type $type", (version) => {
  let folder: NestFolder;
  beforeAll(async () => {
    folder = await nestFolder(version);
    const sources = ["__tests__/nestjs/consumer/probe.ts", "examples/cron-nestjs/host.ts"];
    expect(await folder.compile(sources)).toBe("");
  });
  afterAll(async () => await folder[Symbol.asyncDispose]());

  test("the module and the decorators do what they should", async () => {
    const options = { cwd: folder.path, env: consumerEnv() };
    const { stdout, stderr } = await run(process.execPath, ["probe.js"], options);
    expect(`${stderr}${stdout}`.trimEnd().split("\n")).toEqual([
      "1 none order#1 true, 1 none order#1 true, 1 late order#1 true, 1 none order#1 true; at most 1 at once",
      "of request scope: one one other",
      "metadata: admin admin",
      "syncs",
      "useClass: locks-by-class",
      "the shutdown has begun: 5 none order#5 true",
      "the job runs",
      "LOCK_CLOSED LOCK_CONFIG",
      "two copies: true, mixed",
      "does not start: each request would make a LockTable",
      "does not start: two LockModules",
      "does not start: LockModule.forRoot()",
    ]);
  });

  test("of three applications one runs each tick of @nestjs/schedule, also after the one that ran was killed", async () => {
    const env = { ...(consumerEnv() as Record<string, string>), TABLE_NAME: await createTestTable() };
    const program = pathToFileURL(join(folder.path, "host.js"));
    const lines: string[] = [];
    const onLine = (line: string): void => void lines.push(line);
    await using a = new Program(program, ["a"], { env, onLine });
    await using b = new Program(program, ["b"], { env, onLine });
    await using c = new Program(program, ["c"], { env, onLine });
    const hosts: Readonly<Record<string, Program>> = { a, b, c };
    const runs = () =>
      lines.flatMap((line) => [/^(\w) runs (.*)$/.exec(line)?.slice(1) ?? []]).filter(([host]) => host);
    await eventually(() => runs().length >= 2);
    const killed = runs().at(-1)?.[0] ?? "";
    hosts[killed]?.kill("SIGKILL");
    await hosts[killed]?.exited;
    const before = runs().length;
    await eventually(() => runs().length >= before + 2);
    expect(
      runs()
        .slice(before)
        .every(([host]) => host !== killed),
    ).toBe(true);
    const ticks = runs().map(([, tick]) => tick);
    expect(ticks).toEqual([...new Set(ticks)].sort());
    // The hooks end the others: nobody has to end the process.
    const rest = Object.values(hosts).filter((host) => host !== hosts[killed]);
    for (const host of rest) host.kill("SIGTERM");
    await Promise.all(rest.map(({ exited }) => exited));
    expect(lines.filter((line) => /error|closed/i.test(line))).toEqual([]);
  });
});
