import { execFile, spawn } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll } from "@jest/globals";
import { compiled } from "../support/compiled.js";
import { clientEnv, testEndpoint } from "../support/endpoint.js";
import { type Ended, Running } from "./running.js";

const run = promisify(execFile);
const ROOT = process.cwd();

/** A program for the other side of `--`. */
export const SECTION: readonly string[] = [process.execPath, compiled(new URL("./hosts/section.js", import.meta.url))];

export interface StartOptions {
  /** Added to the environment; undefined takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Default: the engine's. */
  readonly endpoint?: string;
}

/** Those of the host that the tests run on. */
const NO_PROXIES = {
  HTTPS_PROXY: undefined,
  https_proxy: undefined,
  HTTP_PROXY: undefined,
  http_proxy: undefined,
  AWS_CA_BUNDLE: undefined,
};

/** The command as npm would install it from the packed tarball. */
export class InstalledCli {
  /** The folder that `dynamutex` is in. */
  bin = "";
  #folder = "";
  readonly #started: Running[] = [];

  /** @internal */
  async install(): Promise<void> {
    this.#folder = await mkdtemp(join(tmpdir(), "dynamutex-cli-"));
    const modules = join(this.#folder, "node_modules");
    const installed = join(modules, "dynamutex");
    const { stdout } = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", this.#folder]);
    const [{ filename }] = JSON.parse(stdout);
    await mkdir(installed, { recursive: true });
    await run("tar", ["-xzf", join(this.#folder, filename), "-C", installed, "--strip-components=1"]);
    const manifest = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
    for (const name of Object.keys(manifest.dependencies)) {
      await mkdir(dirname(join(modules, name)), { recursive: true });
      await symlink(join(ROOT, "node_modules", name), join(modules, name), "junction");
    }
    this.bin = join(modules, ".bin");
    await mkdir(this.bin);
    const isPacked = process.env.CLI_COVERAGE === undefined && process.env.CLI_NOT_PACKED === undefined;
    const program = isPacked ? join(installed, manifest.bin.dynamutex) : await notPacked();
    await symlink(program, join(this.bin, "dynamutex"));
  }

  /** @internal */
  async remove(): Promise<void> {
    for (const running of this.#started.splice(0)) await running[Symbol.asyncDispose]();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Writes an executable file into the folder that the command is started in. */
  async put(file: string, text: string): Promise<void> {
    await writeFile(join(this.#folder, file), text, { mode: 0o755 });
  }

  async removeFile(file: string): Promise<void> {
    await rm(join(this.#folder, file));
  }

  /** Starts it with pipes for its streams. */
  start(args: readonly string[], options: StartOptions = {}): Running {
    return this.#spawn("dynamutex", args, options);
  }

  /** The same, and waits for its end; its stdin ends at once. */
  async run(args: readonly string[], options: StartOptions = {}): Promise<Ended> {
    const running = this.start(args, options);
    running.endInput();
    return await running.ended;
  }

  /** A shell's command line with pipes. */
  shell(line: string, options: StartOptions = {}): Running {
    return this.#spawn("sh", ["-c", line], options);
  }

  /**
   * Starts a shell's command line on a terminal of its own: what is typed are keys, and stderr is shown like stdout. The
   * shell leads the session unless the line says `exec`.
   */
  terminal(line: string, options: StartOptions = {}): Running {
    const { env, ...others } = options;
    const terminal = { SHELL: "/bin/sh", TERM: "xterm", COLUMNS: undefined, LINES: undefined, ...env };
    return this.#spawn("script", ["-qfec", line, "/dev/null"], { ...others, env: terminal });
  }

  #spawn(command: string, args: readonly string[], { env = {}, endpoint = testEndpoint() }: StartOptions): Running {
    const child = spawn(command, args, {
      cwd: this.#folder,
      detached: true, // from the terminal that the tests may run in
      env: {
        ...process.env,
        PATH: [this.bin, dirname(process.execPath), process.env.PATH].join(delimiter),
        ...clientEnv(endpoint),
        AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: undefined,
        NODE_OPTIONS: undefined,
        ...NO_PROXIES,
        NODE_V8_COVERAGE: process.env.CLI_COVERAGE,
        // Node shows no colours where it believes to be in CI.
        CI: undefined,
        NO_COLOR: undefined,
        DEBUG: undefined,
        ...env,
      },
    });
    const running = new Running(child);
    this.#started.push(running);
    return running;
  }
}

/**
 * The command of the library that these tests were compiled with: where coverage is measured, because what is packed is minified, and
 * where that library is a mutant.
 */
async function notPacked(): Promise<string> {
  const program = compiled(new URL("../../lib/cli/main.js", import.meta.url));
  await chmod(program, 0o755);
  return program;
}

/** One for all the tests of a file. */
export function useInstalledCli(): InstalledCli {
  const cli = new InstalledCli();
  beforeAll(() => cli.install(), 120_000);
  afterAll(() => cli.remove());
  return cli;
}
