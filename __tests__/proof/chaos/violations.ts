import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** One event of the history that a run leaves, as .ci/check-history.js describes it: the checker has no more than these. */
export type HistoryEvent = { readonly log: string; readonly event: string } & Readonly<Record<string, unknown>>;

const CHECKER = join(process.cwd(), ".ci", "check-history.js");

/** What the checker prints of a history, in a process of its own: it has nothing but the file. */
export async function violationsIn(events: readonly HistoryEvent[], file?: string): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), "dynamutex-history-"));
  const path = file ?? join(folder, "history.jsonl");
  try {
    await writeFile(path, events.map((event) => `${JSON.stringify(event)}\n`).join(""));
    const options = { maxBuffer: 64 * 1024 * 1024 };
    const { code, stdout, stderr } = await new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
      execFile(process.execPath, [CHECKER, path], options, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
      );
    });
    const lines = stdout.trimEnd().split("\n");
    // The last line counts them: without it the checker has not come to its end.
    const isWhole = /^\d+ events, \d+ violations$/.test(lines.at(-1) ?? "");
    if (!isWhole || (code !== 0) !== lines.length > 1)
      throw new Error(`The checker ended with ${code}: ${stdout}${stderr}`);
    return lines.slice(0, -1);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
