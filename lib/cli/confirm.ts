import { createInterface } from "node:readline/promises";
import { isatty } from "node:tty";
import { Failure } from "./failure.js";

/** Asks on the terminal. @throws {@link Failure} if there is nobody to ask, or the answer is not yes. */
export async function confirm(question: string): Promise<void> {
  if (!isatty(0)) throw new Failure("there is no terminal to ask on: give --yes if you are certain");
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const ended = new Promise<string>((resolve) => terminal.once("close", () => resolve("")));
    const answer = await Promise.race([terminal.question(`${question} [y/N] `), ended]);
    if (!/^y(es)?$/i.test(answer.trim())) throw new Failure("nothing was unlocked");
  } finally {
    terminal.close();
  }
}
