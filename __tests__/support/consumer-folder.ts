import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { clientEnv, testEndpoint } from "./endpoint.js";

const run = promisify(execFile);
const ROOT = process.cwd();

/** What the documentation's blocks leave to the reader, as declarations. */
export const PRELUDE: readonly string[] = ["prelude.d.ts", "shapes.d.ts"].map((name) =>
  join(ROOT, "__tests__", "pages", name),
);

/** What a project of NestJS sets. */
const AS_NEST = ["--experimentalDecorators", "--emitDecoratorMetadata"];

/** A project that has this package, the AWS SDK, Node's types and what the recipes need installed, and nothing else. */
export interface ConsumerFolder extends AsyncDisposable {
  readonly path: string;
  write(name: string, text: string): Promise<void>;
  /** Compiles files as a consumer would, into a folder. @returns what the compiler complains about. */
  compile(files: readonly string[], options: { readonly target: string; readonly outDir?: string }): Promise<string>;
  /** Runs a program, with the AWS SDK led to the tests' engine. @returns what it printed, without the last line's end. */
  run(file: string, ...args: readonly string[]): Promise<string>;
}

export async function consumerFolder(): Promise<ConsumerFolder> {
  const path = await mkdtemp(join(tmpdir(), "dynamutex-docs-"));
  const modules = join(path, "node_modules");
  await mkdir(modules);
  await symlink(ROOT, join(modules, "dynamutex"), "junction");
  for (const scope of [
    "@types",
    "@aws-sdk",
    "@nestjs",
    "@opentelemetry",
    "node-cron",
    "croner",
    "express",
    "fastify",
    "@middy",
    "pino",
    "prom-client",
    "reflect-metadata",
    "rxjs",
  ]) {
    await symlink(join(ROOT, "node_modules", scope), join(modules, scope), "junction");
  }
  await writeFile(join(path, "package.json"), JSON.stringify({ type: "module", private: true }));
  return {
    path,
    write: (name, text) => writeFile(join(path, name), text),
    async compile(files, { target, outDir }) {
      const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
      const options = ["--target", target, "--lib", "es2023", "--module", "nodenext", "--strict", "--types", "node"];
      const output = outDir === undefined ? ["--noEmit"] : ["--rootDir", path, "--outDir", outDir];
      return run(process.execPath, [tsc, ...options, ...AS_NEST, ...output, ...files], {
        cwd: path,
      }).then(
        ({ stdout }) => stdout,
        (error) => error.stdout || String(error),
      );
    },
    async run(file, ...args) {
      const { stdout } = await run(process.execPath, [file, ...args], {
        cwd: path,
        env: consumerEnv(),
        timeout: 30_000,
      });
      return stdout.trimEnd();
    },
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}

/** The environment of a consumer's program. */
export function consumerEnv(): NodeJS.ProcessEnv {
  return {
    ...process.env,
    ...clientEnv(testEndpoint()),
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
  };
}
