// Imports in lib/ point downward only, and time enters through lib/time/clock.ts alone. The rules are in layers.js.
//
//   node .ci/import-direction.js [folder]      the folder is lib, unless another is given

import { readdirSync, readFileSync } from "node:fs";
import { join, posix, resolve, sep } from "node:path";
import ts from "typescript-5.9"; // the last major version of the compiler that is also a library
import { IMPORTS_ONLY, LAYERS, ONLY_IMPORTED_BY, PACKAGES, TIME } from "./layers.js";

if (process.argv[1] === import.meta.filename) {
  const { files, problems } = checkImports(resolve(process.argv[2] ?? join(import.meta.dirname, "..", "lib")));
  for (const problem of problems) console.error(problem);
  console.log(`import direction: ${files.length} files, ${problems.length} problems`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}

/** @returns the files in this folder, and what is wrong with what they import. */
export function checkImports(lib) {
  const files = readdirSync(lib, { recursive: true, encoding: "utf8" })
    .map((file) => file.split(sep).join("/"))
    .filter((file) => /\.[cm]?tsx?$/.test(file))
    .sort();
  const problems = [];
  const graph = new Map();
  for (const file of files) {
    if (layerOf(file) === undefined) {
      problems.push(
        `lib/${file}: not in the list of layers: add it to LAYERS in .ci/layers.js, above all that it imports`,
      );
    }
    graph.set(file, check(lib, file, files, problems));
  }
  return { files, problems: [...problems, ...circles(graph)] };
}

/** Checks one file, and adds what is wrong to the problems. @returns the files in lib/ that it imports. */
function check(lib, file, files, problems) {
  const source = ts.createSourceFile(file, readFileSync(join(lib, file), "utf8"), ts.ScriptTarget.Latest, true);
  const imported = [];
  const complain = (node, text) => {
    const { line } = source.getLineAndCharacterOfPosition(node.getStart(source));
    problems.push(`lib/${file}:${line + 1}: ${text}`);
  };
  const visit = (node) => {
    const found = importOf(node);
    if (found?.specifier.startsWith(".")) {
      const target = targetOf(file, found.specifier, files);
      if (target === undefined) {
        complain(node, `"${found.specifier}" is not a file in lib/`);
      } else {
        imported.push(target);
        checkDirection(file, target, (text) => complain(node, text));
      }
    } else if (found !== undefined) {
      checkPackage(file, found, (text) => complain(node, text));
    }
    if (!isIn(file, TIME.allowedIn)) checkTime(node, (text) => complain(node, text));
    ts.forEachChild(node, visit);
  };
  visit(source);
  return imported;
}

function checkDirection(file, target, complain) {
  const [from, to] = [layerOf(file), layerOf(target)];
  if (from === undefined || to === undefined || from === to) return; // unknown files are reported once, circles apart
  if (LAYERS.indexOf(to) < LAYERS.indexOf(from)) {
    complain(`imports lib/${target}, which stands above it: imports point downward only (.ci/layers.js)`);
  }
  const importers = ONLY_IMPORTED_BY[to];
  if (importers !== undefined && !isIn(file, importers)) {
    complain(`imports lib/${target}: only ${list(importers)} may import lib/${to} (.ci/layers.js)`);
  }
  const allowed = IMPORTS_ONLY[from];
  if (allowed !== undefined && !isIn(target, allowed)) {
    complain(`imports lib/${target}: lib/${from} may import only ${list(allowed)} (.ci/layers.js)`);
  }
}

function checkPackage(file, { specifier, typeOnly }, complain) {
  for (const { name, run, types, because } of PACKAGES) {
    if (!name.test(specifier) || isIn(file, run)) continue;
    if (!typeOnly) {
      complain(`imports ${specifier} at run time: ${because}`);
    } else if (!isIn(file, types)) {
      complain(`imports types from ${specifier}: ${because}${types.length ? `, and its types ${list(types)}` : ""}`);
    }
  }
  if (TIME.modules.includes(specifier) && !typeOnly && !isIn(file, TIME.allowedIn)) {
    complain(`imports ${specifier}: time enters lib/ through the Clock alone (lib/time/clock.ts)`);
  }
}

function checkTime(node, complain) {
  const say = (what) => complain(`uses ${what}: time enters lib/ through the Clock alone (lib/time/clock.ts)`);
  if (ts.isPropertyAccessExpression(node)) {
    const member = `${node.expression.getText().replace(/^globalThis\./, "")}.${node.name.text}`;
    if (TIME.members.includes(member)) say(member);
    if (node.expression.getText() === "globalThis" && TIME.globals.includes(node.name.text)) say(node.name.text);
  } else if (ts.isIdentifier(node) && TIME.globals.includes(node.text)) {
    const { parent } = node;
    const isName = "name" in parent && parent.name === node; // x.setTimeout, { setTimeout: … }, a method of that name
    if (!isName || ts.isShorthandPropertyAssignment(parent)) say(node.text);
  } else if (ts.isNewExpression(node) && node.expression.getText() === "Date" && !node.arguments?.length) {
    say("new Date() with no argument");
  } else if (ts.isCallExpression(node) && node.expression.getText() === "Date") {
    say("Date()");
  }
}

/** What a node imports: a static or dynamic import, a re-export, an import type. */
function importOf(node) {
  if (ts.isImportDeclaration(node)) {
    return { specifier: node.moduleSpecifier.text, typeOnly: node.importClause?.isTypeOnly === true };
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined) {
    return { specifier: node.moduleSpecifier.text, typeOnly: node.isTypeOnly };
  }
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    const [argument] = node.arguments;
    return { specifier: ts.isStringLiteralLike(argument) ? argument.text : argument.getText(), typeOnly: false };
  }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
    return { specifier: node.argument.literal.text, typeOnly: true };
  }
  return undefined;
}

function targetOf(file, specifier, files) {
  const path = posix.normalize(posix.join(posix.dirname(file), specifier)).replace(/\.([cm]?)js$/, ".$1ts");
  return files.includes(path) ? path : undefined;
}

/** The line in LAYERS that a file belongs to: its own, or the one of its folder. */
function layerOf(file) {
  return LAYERS.find((layer) => isIn(file, [layer]));
}

function isIn(file, places) {
  return places.some((place) => (place.endsWith("/") ? file.startsWith(place) : file === place));
}

function list(places) {
  return places.map((place) => `lib/${place}`).join(", ");
}

/** Circles of imports, each told once. Type imports count: a circle of types is a circle of concepts. */
function circles(imports) {
  const found = [];
  const done = new Set();
  const walk = (file, path) => {
    const at = path.indexOf(file);
    if (at !== -1) {
      found.push(`lib/${file}: imports itself through ${[...path.slice(at), file].join(" -> ")}`);
      return;
    }
    if (done.has(file)) return;
    for (const next of imports.get(file) ?? []) walk(next, [...path, file]);
    done.add(file);
  };
  for (const file of imports.keys()) walk(file, []);
  return found;
}
