/** What this command has put into the environment for the SDK, and where it was given: the option, or another variable. */
const sources = new Map<string, string>();

/** Puts it there: the SDK reads nothing else. What is run under a lock gets the environment of this command without it. */
export function giveToSdk(variable: string, source: string, value: string | undefined): void {
  if (value === undefined) return;
  process.env[variable] = value;
  sources.set(variable, source);
}

/** Where the value of a variable of the SDK was given. */
export const sourceOf = (variable: string): string => sources.get(variable) ?? variable;

/** A message of the library that says which variable to correct: with the option that was typed in its place. */
export function asGiven(text: string): string {
  return text.replace(/\bAWS_[A-Z_]+(?= is |, which is )/g, sourceOf);
}
