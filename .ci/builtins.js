/**
 * Lets a CommonJS package that is bundled into an ES module, which has no `require`, have Node's own modules: commander.
 * An ES module's `import` of them stays as it is.
 */
export const builtins = {
  name: "builtins",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:/ }, ({ kind, path }) =>
      kind === "require-call" ? { path, namespace: "builtins" } : undefined,
    );
    onLoad({ filter: /.*/, namespace: "builtins" }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)});`,
    }));
  },
};
