/// <reference lib="esnext.disposable" preserve="true" />
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const ROOT = process.cwd();

/** Each version of NestJS that the package is for, where npm has put it, and the kind of project that `nest new` makes with it. */
export const VERSIONS = [
  { version: "10", home: homeOf("nest-10/package.json"), type: "commonjs" },
  { version: "11", home: ROOT, type: "commonjs" },
  { version: "12", home: homeOf("nest-12/package.json"), type: "module" },
] as const;

function homeOf(manifest: string): string {
  return dirname(createRequire(join(ROOT, "package.json")).resolve(manifest));
}

/** A project that has one version of NestJS, and the package as it is built. */
export interface NestFolder extends AsyncDisposable {
  readonly path: string;
  /** Compiles sources as a project of NestJS does. @returns what the compiler complains about. */
  compile(sources: readonly string[]): Promise<string>;
}

export async function nestFolder({ home, type }: (typeof VERSIONS)[number]): Promise<NestFolder> {
  const path = await mkdtemp(join(tmpdir(), "dynamutex-nest-"));
  const modules = join(path, "node_modules");
  await mkdir(join(modules, "dynamutex"), { recursive: true });
  // A link would have the package find the NestJS of this project.
  await cp(join(ROOT, "dist"), join(modules, "dynamutex", "dist"), { recursive: true });
  await cp(join(ROOT, "package.json"), join(modules, "dynamutex", "package.json"));
  await symlink(join(home, "node_modules", "@nestjs"), join(modules, "@nestjs"), "junction");
  for (const name of ["@aws-sdk", "@types", "reflect-metadata", "rxjs"]) {
    await symlink(join(ROOT, "node_modules", name), join(modules, name), "junction");
  }
  await writeFile(join(path, "package.json"), JSON.stringify({ type, private: true }));
  return {
    path,
    async compile(sources) {
      const files = sources.map((source) => source.split("/").at(-1) ?? source);
      for (const [index, source] of sources.entries()) await cp(join(ROOT, source), join(path, files[index] ?? ""));
      const compilerOptions = {
        ...{ target: "es2023", lib: ["es2023"], module: "nodenext", types: ["node"], strict: true, skipLibCheck: true },
        ...{ experimentalDecorators: true, emitDecoratorMetadata: true, isolatedModules: true, esModuleInterop: true },
      };
      await writeFile(join(path, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
      const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
      return await run(process.execPath, [tsc], { cwd: path }).then(
        ({ stdout }) => stdout,
        (error) => error.stdout || String(error),
      );
    },
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}
