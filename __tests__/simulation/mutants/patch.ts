/** A change of one compiled file: every occurrence of `find`, of which there must be as many as stated. */
export interface Patch {
  readonly file: string;
  readonly find: RegExp;
  readonly replace: string;
  readonly matches: number;
}

/** Defects that somebody might build in, and that the simulation has to find, by their names. */
export type Defects = Readonly<Record<string, readonly Patch[]>>;

/** Makes patches of one file. */
export function inFile(file: string): (find: RegExp, replace: string, matches?: number) => Patch {
  return (find, replace, matches = 1) => ({ file, find, replace, matches });
}
