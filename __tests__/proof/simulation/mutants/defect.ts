/**
 * What somebody might get wrong in lib/, as edits of its TypeScript: text of a file, and what replaces it. The text occurs there
 * exactly once; a space in it stands for any white space, so that formatting breaks no edit.
 *
 * Whoever changes such a text writes the edit anew: the same mistake, in code that compiles. `npm run jest -- mutants` lists the edits
 * that do not apply or compile. In code behind `if (false)` or an inserted `return`, the compiler narrows no types: write
 * `if (Boolean(0))`. A local that an edit leaves unused is no error. A defect that has become impossible is deleted.
 */
export interface Defect {
  readonly [file: `${string}.ts`]: Readonly<Record<string, string>>;
  /** The rules of the pages that do not hold in it, by their ids: see page-rules.ts. */
  readonly takesOut: readonly string[];
  /** The file of `__tests__/` whose tests fail, where no schedule of the simulation does, or too few: "behaviour/fair/queue". */
  readonly test?: string;
}

/** Defects by their names. */
export type Defects = Readonly<Record<string, Defect>>;
