/** The code under test: it builds a report, one host at a time, and gives up when it loses the lock. */
export async function report(locks, build) {
  return await locks.mutex("report").run(async ({ signal }) => await build(signal), { waitMs: 5_000 });
}

/** The same for a job that all hosts have on the same schedule. */
export async function reportIfFree(locks, build) {
  const result = await locks.mutex("report").tryRun(async ({ signal }) => await build(signal));
  return result.ran ? result.value : `left to ${result.holder?.owner}`;
}
