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
 * The text of a declaration file in which the constructor of each class has the text of the class: it is what an editor shows where somebody
 * writes `new`. What the constructor says itself follows.
 */
export function withConstructorTexts(file) {
  const text = readFileSync(join(DIST, file), "utf8");
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const edits = source.statements.filter(ts.isClassDeclaration).flatMap((declaration) => {
    const made = declaration.members.find(ts.isConstructorDeclaration);
    const [told] = linesOf(declaration).join("\n").split(/^@/m);
    if (made === undefined || told === "") return [];
    const lines = [...told.trimEnd().split("\n"), "", ...linesOf(made)];
    const comment = ["/**", ...lines.map((line) => ` * ${line}`.trimEnd()), " */"].join("\n    ");
    const own = ts.getJSDocCommentsAndTags(made).find(ts.isJSDoc);
    const [from, to] = own === undefined ? [made.getStart(), made.getStart()] : [own.getStart(), own.getEnd()];
    return [{ from, to, comment: own === undefined ? `${comment}\n    ` : comment }];
  });
  return edits.reduceRight((all, { from, to, comment }) => all.slice(0, from) + comment + all.slice(to), text);
}

/** The lines of a declaration's doc comment, without its stars. */
function linesOf(declaration) {
  const comment = ts.getJSDocCommentsAndTags(declaration).find(ts.isJSDoc)?.getText() ?? "";
  const lines = comment.replace(/^\/\*\*|\*\/$/g, "").split("\n");
  return lines
    .map((line) => line.replace(/^\s*\* ?/, "").trimEnd())
    .join("\n")
    .trim()
    .split("\n");
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
    const doc = docOf(symbol);
    lines.push(`${doc}export declare const ${name}: typeof esm.${name};`);
    if (isType) lines.push(`${doc}export type ${name}${parameters(symbol)} = esm.${name}${names(symbol)};`);
  }
  const from = `"./${basename(file).replace(/\.d\.ts$/, ".js")}" with { "resolution-mode": "import" };`;
  return [
    `import type * as esm from ${from}`,
    ...(types.length === 0 ? [] : [`export type { ${types.join(", ")} } from ${from}`]),
    ...lines,
    "",
  ].join("\n");

  /** An editor shows the text of this declaration, and not that of the one that it stands for. */
  function docOf(symbol) {
    const [doc] = symbol.declarations.flatMap((each) => ts.getJSDocCommentsAndTags(each).filter(ts.isJSDoc));
    return doc === undefined ? "" : `${doc.getText().replace(/^ +\*/gm, " *")}\n`;
  }

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
