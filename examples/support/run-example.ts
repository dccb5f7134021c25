/// <reference lib="esnext.disposable" preserve="true" />
import { engineToUse } from "./engine.js";

const AT_MOST_MS = 90_000;

/** Plays an example on an engine. The process's exit code is 0 if it returns true: all was as it should be. */
export async function runExample(play: () => Promise<boolean>): Promise<void> {
  const tooLong = setTimeout(() => {
    console.error(`The example was not over after ${AT_MOST_MS / 1_000} s`);
    process.exit(1);
  }, AT_MOST_MS);
  try {
    await using _engine = await engineToUse();
    process.exitCode = (await play()) ? 0 : 1;
  } catch (error) {
    console.error(error);
    process.exitCode = 1;
  } finally {
    clearTimeout(tooLong);
  }
}
