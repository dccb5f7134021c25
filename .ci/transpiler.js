/**
 * TypeScript to JavaScript, a file at a time and without a check of its types: for tests and proofs. What is shipped is the
 * compiler's.
 *
 * esbuild is quick and emits no metadata for decorators. NestJS injects by it, so what it makes instances of goes through a compiler.
 */
import { transform } from "esbuild";

const NEEDS_METADATA = /^\s*@(Injectable|Module|Controller)\(/m;

export async function transpile(source, path) {
  if (NEEDS_METADATA.test(source)) return await withMetadata(source, path);
  const { code, map } = await transform(source, {
    loader: "ts",
    target: "node20.19",
    format: "esm",
    sourcefile: path,
    sourcemap: "external",
    tsconfigRaw: { compilerOptions: { experimentalDecorators: true, verbatimModuleSyntax: true } },
  });
  return { code, map };
}

async function withMetadata(source, path) {
  const { default: typescript } = await import("typescript-5.9");
  const { outputText, sourceMapText } = typescript.transpileModule(source, {
    fileName: path,
    compilerOptions: {
      target: "es2022",
      module: "esnext",
      sourceMap: true,
      verbatimModuleSyntax: true,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
    },
  });
  const map = JSON.stringify({ ...JSON.parse(sourceMapText), sources: [path] });
  return { code: outputText.replace(/^\/\/# sourceMappingURL=.*$/m, ""), map };
}
