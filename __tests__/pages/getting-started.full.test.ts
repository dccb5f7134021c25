import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import { freePort } from "../support/free-port.js";
import { blocksOf, pageAt } from "../support/pages.js";

const run = promisify(execFile);
const ROOT = process.cwd();
const PAGE = pageAt("docs/guides/getting-started.md");
const STEPS = PAGE.text
  .split(/^(?=## )/m)
  .filter((section) => /^## \d+\. /.test(section))
  .map((section) => ({ title: section.split("\n")[0] ?? "", blocks: blocksOf({ path: PAGE.path, text: section }) }));

/** In the place of npm and npx: they install from this repository, so that the test needs no network. */
const NPM = `
npx() { node "$REPOSITORY/node_modules/typescript/bin/$@"; }
npm() {
  if [ "$1" != install ]; then command npm "$@"; return; fi
  for name in "\${@:2}"; do
    case "$name" in
      --*) ;;
      dynamutex) mkdir -p node_modules && ln -s "$REPOSITORY" node_modules/dynamutex ;;
      *) mkdir -p "node_modules/$(dirname "$name")" && test -d "$REPOSITORY/node_modules/$name" && ln -s "$REPOSITORY/node_modules/$name" "node_modules/$name" ;;
    esac
  done
}
`;

test("the steps lead from an empty folder to two processes that contend for a lock", async () => {
  expect(STEPS.length).toBeGreaterThan(5);
  expect(STEPS.length).toBeLessThan(20);
  expect(STEPS.map(({ title }) => Number.parseInt(title.slice(3), 10))).toEqual(STEPS.map((_, index) => index + 1));

  const empty = await mkdtemp(join(tmpdir(), "dynamutex-start-"));
  const port = await freePort();
  let engine: ChildProcess | undefined;
  try {
    let terminal = `set -e\n${NPM}\n`;
    for (const { title, blocks } of STEPS) {
      for (const { language, text } of blocks) {
        const code = text.replaceAll("8000", String(port));
        const [, file] = /Save this as `(.+)`/.exec(title) ?? [];
        if (file !== undefined) terminal += `cat > ${file} <<'END_OF_FILE'\n${code}END_OF_FILE\n`;
        else if (language !== "sh")
          continue; // what a step prints
        else if (title.includes("second terminal")) {
          await shell(terminal, empty); // what is there so far
          engine = startIn(join(empty, "locks-demo"), code);
          await isUp(port, engine);
          terminal = `set -e\n${NPM}\ncd locks-demo\n`;
        } else terminal += code;
      }
    }
    const printed = (await shell(terminal, empty)).split("\n");
    const told = printed.slice(printed.indexOf("ACTIVE") + 1).filter((line) => line !== "");
    expect(printed).toContain("ACTIVE");
    expect(told).toHaveLength(12);
    for (const who of ["alice", "bob"]) {
      const own = told.filter((line) => line.startsWith(who));
      expect(own).toEqual([1, 2, 3].flatMap((page) => [`${who} prints page ${page}`, `${who} is done`]));
    }
    // Never two at once: each begins when the one before is done.
    told.forEach((line, index) => {
      if (index % 2 === 1) expect(line).toBe(`${told[index - 1]?.split(" ")[0]} is done`);
    });
  } finally {
    if (engine?.pid !== undefined && engine.exitCode === null) {
      process.kill(-engine.pid, "SIGKILL");
      await once(engine, "exit");
    }
    await rm(empty, { recursive: true, force: true });
  }
});

const ENGINE = STEPS.find(({ title }) => title.includes("`dynamodb.mjs`"))?.blocks[0]?.text ?? "";

test("without Java, the engine's program says what to install", async () => {
  const { code, printed } = await startEngine({ PATH: "/nowhere" }).ended;
  expect(printed).toBe("No Java was found: install Java 17 or newer, or use Docker.\n");
  expect(code).toBe(1);
});

test("with a Java that is too old, or a port that is taken, the engine's program says what it needs", async () => {
  const folder = await mkdtemp(join(tmpdir(), "dynamutex-java-"));
  try {
    await writeFile(join(folder, "java"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
    const { code, printed } = await startEngine({ PATH: `${folder}:${process.env.PATH}` }).ended;
    expect(printed).toBe(
      "DynamoDB Local has ended: it needs Java 17 or newer, and port 8000, where an earlier one may still run.\n",
    );
    expect(code).toBe(1);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test.each(["SIGINT", "SIGTERM"] as const)("the end of the engine's program by %s is that of Java", async (signal) => {
  const port = await freePort();
  const { child, ended } = startEngine({}, port);
  await isUp(port, child);
  child.kill(signal);
  await ended;
  await expect(fetch(`http://127.0.0.1:${port}`)).rejects.toThrow("fetch failed");
});

test("docs/guides/local-development.md: the end of its line for the engine is that of Java", async () => {
  const port = await freePort();
  const [line = ""] = blocksOf(pageAt("docs/guides/local-development.md")).flatMap(({ language, text }) =>
    language === "sh" ? (/^node [\s\S]*/m.exec(text) ?? []) : [],
  );
  const child = spawn("bash", ["-c", `exec ${line.replace("8000", String(port))}`], { stdio: "ignore" });
  const ended = once(child, "exit");
  await isUp(port, child);
  child.kill("SIGTERM");
  await ended;
  await expect(fetch(`http://127.0.0.1:${port}`)).rejects.toThrow("fetch failed");
});

/** The page's program for the engine, as it stands there but for its port. */
function startEngine(env: NodeJS.ProcessEnv, port = 8000) {
  const code = ENGINE.replace("port: 8000", `port: ${port}`);
  const child = spawn(process.execPath, ["--input-type=module", "--eval", code], { env: { ...process.env, ...env } });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (printed += text));
  const ended = once(child, "close").then(([exitCode]) => ({ code: exitCode, printed }));
  return { child, ended };
}

/** What a shell prints that gets these lines. */
async function shell(lines: string, cwd: string): Promise<string> {
  const env = { ...process.env, REPOSITORY: ROOT, AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true" };
  const { stdout } = await run("bash", ["-c", lines], { cwd, env, timeout: 100_000 });
  return stdout;
}

/** A second terminal: with a process group of its own, which ends as one. */
function startIn(cwd: string, code: string): ChildProcess {
  return spawn("bash", ["-c", code], { cwd, detached: true, stdio: "ignore" });
}

async function isUp(port: number, engine: ChildProcess): Promise<void> {
  while ((await fetch(`http://127.0.0.1:${port}`).catch(() => undefined)) === undefined) {
    if (engine.exitCode !== null) throw new Error(`The engine of the page ended with ${engine.exitCode}`);
    await sleep(100);
  }
}
