import { execFileSync } from "node:child_process";
import { describe, expect, test } from "@jest/globals";
import { rowOf, useScene } from "../support/scene.js";
import { createTestTable } from "../support/table.js";
import { useInstalledCli } from "./installed-cli.js";

const scene = useScene();
const cli = useInstalledCli();

const command = (...args: readonly string[]) => cli.run(args, { env: { DYNAMUTEX_TABLE: scene.tableName } });

describe("a line that cannot be understood says in one line what to type:", () => {
  test.each<[string, string, string]>([
    [
      "an option before its command",
      "--table x ls",
      "unknown option '--table': give the command first, and its options behind it: dynamutex COMMAND [options]",
    ],
    ["a forgotten name", "inspect", "missing required argument 'name': dynamutex inspect NAME"],
    [
      "nothing to run",
      "run",
      "missing required argument 'name'; put -- before the command that is run: dynamutex run NAME -- COMMAND",
    ],
    ["a misspelt option", "inspect --jsn deploy", "unknown option '--jsn' (Did you mean --json?)"],
    [
      "what may be a misspelt option or a name",
      "run --tll 5s deploy -- true",
      "unknown option '--tll' (Did you mean --ttl?): otherwise give exactly one NAME before --, in quotes if it is a " +
        "variable, and none that begins with -",
    ],
    [
      "a timeout, which may bound the wait or the run",
      "run --timeout 5m deploy -- true",
      "unknown option '--timeout': --wait 5m bounds the wait for the lock, and nothing else; to bound the run, put timeout, of " +
        "coreutils, before the command: dynamutex run NAME -- timeout 5m COMMAND",
    ],
    [
      "one without a unit, as others have it",
      "run --timeout=90 deploy -- true",
      "unknown option '--timeout=90': --wait 90s bounds the wait for the lock, and nothing else; to bound the run, put timeout, of " +
        "coreutils, before the command: dynamutex run NAME -- timeout 90s COMMAND",
    ],
    [
      "a bound of the run",
      "run --max-hold 1h30m deploy -- true",
      "unknown option '--max-hold': to bound the run, put timeout, of coreutils, before the command: " +
        "dynamutex run NAME -- timeout 5m COMMAND",
    ],
    [
      "an option of the library",
      "run --waitTimeoutMs 5 deploy -- true",
      "unknown option '--waitTimeoutMs' (Did you mean --wait 5ms?)",
    ],
    [
      "a lock's timeout",
      "run --lock-timeout 30 deploy -- true",
      "unknown option '--lock-timeout' (Did you mean --wait 30s?)",
    ],
    ["a short option of flock", "run -w 5 deploy -- true", "unknown option '-w' (Did you mean --wait 5s?)"],
    ["another", "run -E 0 deploy -- true", "unknown option '-E' (Did you mean --busy-code?)"],
    ["an option of run, given to another command", "inspect --nonblock deploy", "unknown option '--nonblock'"],
    ["an option of flock", "run --nonblock deploy -- true", "unknown option '--nonblock' (Did you mean --no-wait?)"],
    ["a lease", "run --lease 5s deploy -- true", "unknown option '--lease' (Did you mean --ttl 5s?)"],
    ["a table's name", "ls --table-name locks", "unknown option '--table-name' (Did you mean --table?)"],
    ["a misspelt command", "inspct deploy", "unknown command 'inspct' (Did you mean inspect?)"],
    ["locks for ls", "locks", "unknown command 'locks' (Did you mean ls?)"],
    ["list for ls", "list", "unknown command 'list' (Did you mean ls?)"],
    ["a command that is none", "deploy", "unknown command 'deploy': dynamutex --help lists them"],
    [
      "more than a timer can run, in days",
      "run --ttl 30d deploy -- true",
      "option '--ttl <duration>' argument '30d' is invalid. Give at most 24d20h, the longest that a timer can run",
    ],
  ])("%s", async (_, line, complaint) => {
    expect(await command(...line.split(" "))).toMatchObject({
      code: 125,
      stdout: "",
      stderr: `dynamutex: ${complaint}\n`,
    });
  });

  test("--every may be longer than a timer: it is the table's clock that counts", async () => {
    const line = ["run", "--every", "30d", scene.name, "--", "true"];
    expect(await command(...line)).toMatchObject({ code: 0, stderr: "" });
  });
});

test("help run is run --help", async () => {
  const [help, option] = await Promise.all([command("help", "run"), command("run", "--help")]);
  expect(help).toMatchObject({ code: 0, stdout: option.stdout, stderr: "" });
  expect(help.stdout).toMatch(/^Usage: dynamutex run /);
});

test("the loop in the help of inspect ends when the lock is free, and not when inspect fails", async () => {
  const { stdout } = await command("inspect", "--help");
  const [, loop = ""] = /\$ (until .*)/.exec(stdout) ?? [];
  const told = execFileSync(
    "/bin/sh",
    [
      "-c",
      `told=0
       dynamutex() { told=$((told + 1)); case $told in 1) return 125;; 2) return 0;; 3) return 125;; *) return 1;; esac; }
       sleep() { :; }
       ${loop}
       echo $told`,
    ],
    { encoding: "utf8" },
  );
  expect(told).toBe("4\n");
});

test("a lock without a holder: until when, and that unlocking cannot end it", async () => {
  const { uuid: _, ...parked } = rowOf({ expires: Date.now() + 3_600_000 });
  await scene.put(parked);
  const until = new Date(Number(parked.expires)).toISOString();
  const [unlock, run] = await Promise.all([
    command("unlock", scene.name, "--force", "--yes"),
    command("run", "--no-wait", scene.name, "--", "true"),
  ]);
  const said = `stays taken until ${until}, which unlocking cannot end`;
  expect(unlock).toMatchObject({ code: 1, stderr: `dynamutex: nobody holds ${scene.name}; it ${said}\n` });
  expect(run).toMatchObject({ code: 75, stderr: expect.stringContaining(`has no holder and ${said}`) });
});

test("a table that is keyed otherwise: the flag to give", async () => {
  const tableName = await createTestTable({ sortKey: false });
  for (const line of [
    ["inspect", "m"],
    ["run", "m", "--", "true"],
  ]) {
    const { code, stderr } = await cli.run(line, { env: { DYNAMUTEX_TABLE: tableName } });
    expect({ line, code, stderr }).toEqual({
      line,
      code: 125,
      stderr: `dynamutex: table ${tableName} does not fit: it has no sort key, and --keys says sort; give --keys name\n`,
    });
  }
});

test("without a region the command speaks of its option", async () => {
  const env = { AWS_REGION: undefined, AWS_DEFAULT_REGION: undefined, AWS_CONFIG_FILE: "/dev/null", HOME: "/" };
  expect(await cli.run(["inspect", "m", "--table", "locks"], { env })).toMatchObject({
    code: 125,
    stderr: "dynamutex: no region is known: give --region, or set AWS_REGION, or a region in ~/.aws/config\n",
  });
});

test("where nothing listens, the command says so as soon as the first connection is refused", async () => {
  const endpoint = "http://127.0.0.1:9";
  const running = cli.start(["inspect", "m", "--table", "locks"], { endpoint });
  await running.says(/nothing listens at \S+: .* AWS_ENDPOINT_URL_DYNAMODB, which is http:\S+:9\. /, "stderr");
  const { code, stderr } = await running.ended;
  expect(code).toBe(125);
  expect(stderr.match(/^dynamutex: nothing listens at .* is tried again until its time is over$/gm)).toHaveLength(1);
  expect(stderr).toMatch(/\ndynamutex: GetItem failed: nothing listens at 127\.0\.0\.1:9: /);
});

test("of a secret with a newline at its end the command says so, also where no signature is checked", async () => {
  const env = { DYNAMUTEX_TABLE: scene.tableName, AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "hunter2\n" };
  const { code, stderr } = await cli.run(["inspect", scene.name], { env });
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringMatching(
      /^dynamutex: there is a newline or a space at the .* AWS_SECRET_ACCESS_KEY, .* it\n$/,
    ),
  });
  expect(stderr).not.toContain("hunter2");
});

test("where another host does not answer and a proxy is set, the command says that it does not use that", async () => {
  const env = { HTTPS_PROXY: "http://proxy.example:3128" };
  const inspect = (endpoint: string) => cli.run(["inspect", "m", "--table", "locks"], { endpoint, env });
  const told = /HTTPS_PROXY has no effect: the AWS SDK for JavaScript does not read it/;
  const { code, stderr } = await inspect("http://table.invalid:8000");
  expect(code).toBe(125);
  expect(stderr).toMatch(told);
  // No proxy leads to one's own machine.
  expect((await inspect("http://127.0.0.1:9")).stderr).not.toMatch(told);
  // Nothing was sent without a region: there the proxy is not the reason.
  const nowhere = {
    ...env,
    AWS_REGION: undefined,
    AWS_DEFAULT_REGION: undefined,
    AWS_CONFIG_FILE: "/dev/null",
    HOME: "/",
  };
  expect((await cli.run(["inspect", "m", "--table", "locks"], { env: nowhere })).stderr).toMatch(/no region is known/);
});

describe("what was given by an option is told by its name:", () => {
  const none = {
    AWS_REGION: undefined,
    AWS_DEFAULT_REGION: undefined,
    AWS_ENDPOINT_URL_DYNAMODB: undefined,
    AWS_PROFILE: undefined,
  };

  test.each<[string, Readonly<Record<string, string>>, string]>([
    ["--region", {}, "--region, which is eu-centrl-1"],
    ["AWS_DEFAULT_REGION", { AWS_DEFAULT_REGION: "eu-centrl-1" }, "AWS_DEFAULT_REGION, which is eu-centrl-1"],
    ["AWS_REGION", { AWS_REGION: "eu-centrl-1", AWS_DEFAULT_REGION: "x" }, "AWS_REGION, which is eu-centrl-1"],
  ])("a region of %s", async (flag, env, told) => {
    const line = ["inspect", "m", "--table", "locks", ...(flag === "--region" ? ["--region", "eu-centrl-1"] : [])];
    const running = cli.start(line, { env: { ...none, ...env } });
    const [said] = await running.says(/no host of the name .*\n/, "stderr");
    expect(said).toContain(
      `dynamodb.eu-centrl-1.amazonaws.com is found: correct ${told}, or check this host's network and DNS. `,
    );
  });

  test("an endpoint", async () => {
    const line = ["inspect", "m", "--table", "locks", "--endpoint-url", "localhost:9"];
    const { code, stderr } = await cli.run(line);
    expect({ code, stderr }).toEqual({
      code: 125,
      stderr: expect.stringContaining("--endpoint-url is localhost:9, which is no URL"),
    });
    expect(stderr).not.toContain("AWS_ENDPOINT_URL_DYNAMODB");
  });

  test.each([
    ["--profile", ["--profile", "prdo"], {}],
    ["AWS_PROFILE", [], { AWS_PROFILE: "prdo" }],
  ])("a profile of %s that does not exist, with the files that were read", async (source, options, env) => {
    await cli.put("config", "[profile prod]\nregion = eu-central-1\n");
    const files = { AWS_CONFIG_FILE: "config", AWS_SHARED_CREDENTIALS_FILE: "/dev/null" };
    const line = ["inspect", "m", "--table", "locks", ...options];
    expect(await cli.run(line, { env: { ...none, ...env, ...files } })).toMatchObject({
      code: 125,
      stderr: `dynamutex: there is no profile prdo in config or /dev/null: correct ${source}\n`,
    });
  });

  test("a profile without credentials", async () => {
    await cli.put("config", "[profile prod]\nregion = eu-central-1\n");
    const files = { AWS_CONFIG_FILE: "config", AWS_SHARED_CREDENTIALS_FILE: "/dev/null" };
    const env = { ...none, ...files, AWS_ACCESS_KEY_ID: undefined, AWS_EC2_METADATA_DISABLED: "true" };
    expect(await cli.run(["inspect", "m", "--table", "locks", "--profile", "prod"], { env })).toMatchObject({
      code: 125,
      stderr:
        "dynamutex: no credentials are known: give a --profile that has some, or set AWS_PROFILE or AWS_ACCESS_KEY_ID\n",
    });
  });
});

test("a table that does not exist: the command that creates this one", async () => {
  const line = ["run", "m", "--table", "lokcs", "--region", "us-east-1", "--keys", "id,,", "--", "true"];
  expect(await cli.run(line, { env: { DYNAMUTEX_TABLE: scene.tableName } })).toMatchObject({
    code: 125,
    stderr:
      "dynamutex: table lokcs does not exist in region us-east-1 for these credentials: `dynamutex create-table --table lokcs " +
      "--keys id,, --region us-east-1` creates it, or correct --table or --region\n",
  });
});
