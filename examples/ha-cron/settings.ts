/** The table of the demo. It is created if it does not exist. */
export const TABLE_NAME = "dynamutex-demo";

/** What every host wants to run at every tick, and only one of them may. */
export const JOB_NAME = "build-report";

/** The schedule: all hosts tick on the same whole seconds. */
export const TICK_MS = 1_000;

/**
 * A lease: how long the others wait for a host that is gone. No multiple of the tick, so that a lease which a host
 * first saw at one tick is over before, and not just after, a later one.
 */
export const TTL_MS = 2_500;

/** The job takes longer than half a lease, so every run needs at least one renewal. */
export const JOB_MS = 2_000;

/** The job works in steps this long, and asks before each whether it still holds the lock. */
export const STEP_MS = 100;
