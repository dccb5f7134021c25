/**
 * The declarations that are packed: those that users can reach, and those for CommonJS.
 *
 * They are not rolled up into one file for each entry point, as api-extractor does: each would have a `LockTable` of its own, and
 * classes with private members are types of their own. rollup-plugin-dts would share chunks, but declares CommonJS apart in the
 * same way, and needs Rollup and one more compiler.
 */
import { readFileSync } from "node:fs";
import { basename, join, posix } from "node:path";
import ts from "typescript-5.9"; // the last major version of the compiler that is also a library
import { DIST } from "./entries.js";

/** The declarations that these refer to, and they themselves, as paths in dist/. */
export function reachableTypes(files) {
  const found = new Set(files);
  for (const file of found) {
    const { importedFiles, referencedFiles } = ts.preProcessFile(readFileSync(join(DIST, file), "utf8"));
    for (const { fileName } of [...importedFiles, ...referencedFiles]) {
      if (!fileName.startsWith(".")) continue;
      found.add(posix.join(posix.dirname(file), fileName).replace(/\.js$/, ".d.ts"));
    }
  }
  return found;
}

/**
 * The types of an entry point for who require()s it, in terms of those of the ES module: a class is one type whichever
 * way it was imported, as it is one class in Node.
 */
export function commonJsTypes(file) {
  const path = join(DIST, file);
  const program = ts.createProgram([path], {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    skipLibCheck: true,
  });
  const checker = program.getTypeChecker();
  const entry = program.getSourceFile(path);
  const symbols = checker.getExportsOfModule(checker.getSymbolAtLocation(entry));
  const exported = new Map(symbols.map((symbol) => [symbol.name, resolved(symbol)]));

  const types = [];
  const lines = [];
  for (const [name, symbol] of exported) {
    const isType = (symbol.flags & ts.SymbolFlags.Type) !== 0;
    if ((symbol.flags & ts.SymbolFlags.Value) === 0) {
      types.push(name);
      continue;
    }
    lines.push(`export declare const ${name}: typeof esm.${name};`);
    if (isType) lines.push(`export type ${name}${parameters(symbol)} = esm.${name}${names(symbol)};`);
  }
  const from = `"./${basename(file).replace(/\.d\.ts$/, ".js")}" with { "resolution-mode": "import" };`;
  return [
    `import type * as esm from ${from}`,
    ...(types.length === 0 ? [] : [`export type { ${types.join(", ")} } from ${from}`]),
    ...lines,
    "",
  ].join("\n");

  function resolved(symbol) {
    return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  }

  function parametersOf(symbol) {
    return symbol.declarations.find(({ typeParameters }) => typeParameters !== undefined)?.typeParameters ?? [];
  }

  function names(symbol) {
    const all = parametersOf(symbol).map(({ name }) => name.text);
    return all.length === 0 ? "" : `<${all.join(", ")}>`;
  }

  function parameters(symbol) {
    const all = parametersOf(symbol).map((parameter) => {
      const own = new Set(parametersOf(symbol).map(({ name }) => name.text));
      const { constraint, default: otherwise } = parameter;
      return [
        parameter.name.text,
        constraint && `extends ${qualified(constraint, own)}`,
        otherwise && `= ${qualified(otherwise, own)}`,
      ]
        .filter(Boolean)
        .join(" ");
    });
    return all.length === 0 ? "" : `<${all.join(", ")}>`;
  }

  /** The text of a type, with the names that the entry exports taken from there. */
  function qualified(type, own) {
    if (!ts.isTypeReferenceNode(type)) return type.getText();
    const name = type.typeName.getText();
    const inner = type.typeArguments?.map((argument) => qualified(argument, own)) ?? [];
    const before = exported.has(name) && !own.has(name) ? "esm." : "";
    return `${before}${name}${inner.length === 0 ? "" : `<${inner.join(", ")}>`}`;
  }
}
