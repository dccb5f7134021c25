/** How many tables have run sections: a number in a name that shows in stacks. */
let tables = 0;

/** Runs the functions of a table's sections, and tells whether one of them calls. */
export interface SectionStack {
  /** Runs a section's function. */
  readonly run: <T>(fn: () => T | Promise<T>) => Promise<T>;
  /** Whether the code that asks was called by such a function, or is awaited by one. */
  readonly isInside: () => boolean;
}

/**
 * V8 knows the async functions that wait for what is called, and shows them in a stack: so a call made inside of a section is
 * recognised without `AsyncLocalStorage`, which would cost every promise of the process something. `run` of each table has a name
 * of its own, and is found by that. Not found is a section without a function (`lock()`), or one that waits for an event which
 * makes the call: nothing may depend on it but a message.
 */
export function sectionStack(): SectionStack {
  tables += 1;
  const name = `dynamutexSectionOfTable${tables}`;
  const named = {
    async [name]<T>(fn: () => T | Promise<T>): Promise<T> {
      return await fn();
    },
  };
  return { run: named[name] as SectionStack["run"], isInside: () => functionsOnStack().includes(name) };
}

/** The names of all functions that have called, or await, the caller. Empty where they cannot be had: with frozen intrinsics. */
function functionsOnStack(): readonly (string | null)[] {
  const { stackTraceLimit, prepareStackTrace } = Error;
  try {
    Error.stackTraceLimit = Number.POSITIVE_INFINITY;
    // Not the text: a debugger, or source maps, may have written other names into it.
    Error.prepareStackTrace = (_error, sites) => sites.map((site) => site.getFunctionName());
    const { stack } = new Error() as { readonly stack?: unknown };
    return Array.isArray(stack) ? stack : [];
  } catch {
    return [];
  } finally {
    restore({ stackTraceLimit, prepareStackTrace });
  }
}

function restore(settings: Partial<Pick<ErrorConstructor, "stackTraceLimit" | "prepareStackTrace">>): void {
  try {
    Object.assign(Error, settings);
  } catch {
    // They could not be changed either.
  }
}
