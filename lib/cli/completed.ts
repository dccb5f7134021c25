/** What a shell completes: one command and its options. */
export interface Completed {
  readonly name: string;
  readonly description: string;
  readonly options: readonly CompletedOption[];
  /** What its argument may be, where that is known. */
  readonly choices: readonly string[];
}

export interface CompletedOption {
  readonly flag: string;
  readonly description: string;
  /** What stands for its value; undefined if it has none. */
  readonly value: string | undefined;
  readonly choices: readonly string[];
}
