import { LockStoreError } from "../errors.js";
import { LONGEST_ATTEMPT_MS } from "../session/retry.js";
import type { Host } from "../session/session.js";
import type { Bounds } from "../time/clock.js";
import type { Once } from "./grant.js";
import type { Wait } from "./wait.js";

/** How long a call waits at most until the clock can tell which period it is: longer than the library's own clocks ever need. */
const MOST_DOUBT_MS = 5_000;

/**
 * The tick to ask for now. Without an idea of the table's time the row is read first, which shows it.
 *
 * A period is named by its beginning, in epoch ms on the table's clock, so that the same name may get another
 * `everyMs` one day. It is that of `earliest`: one that has begun, whatever the true time is. Where the bounds lie on
 * both sides of a beginning, nobody can say which period a call belongs to: asked for the earlier one, it might be
 * told that all is done while the later one goes without its run, or run the earlier one beside another host's run of
 * the later. So the call waits until the later one has certainly begun, which takes no longer than the bounds are wide.
 */
export async function tickNow(host: Host, name: string, once: Once, wait: Wait): Promise<number> {
  let bounds = await timeOf(host, name, wait);
  if (once.kind === "tick") return once.tick;
  for (;;) {
    const { earliest, latest } = bounds;
    const begins = Math.floor(earliest / once.everyMs) * once.everyMs;
    const doubt = begins + once.everyMs - earliest;
    // Bounds that are wider than the period never tell.
    const tells = latest < begins + once.everyMs || latest - earliest >= once.everyMs;
    if (tells || doubt > MOST_DOUBT_MS) return begins;
    await host.clock.sleep(Math.ceil(doubt), wait.enough);
    bounds = await timeOf(host, name, wait);
  }
}

async function timeOf(host: Host, name: string, wait: Wait): Promise<Bounds> {
  const { clock, store, observations } = host;
  if (clock.wall() === undefined) {
    const row = await wait.persist(LONGEST_ATTEMPT_MS, wait.until, (signal) =>
      store.read(name, { consistent: false }, signal),
    );
    observations.note(name, row);
  }
  const bounds = clock.wall();
  if (bounds !== undefined) return bounds;
  throw new LockStoreError(
    `Lock ${JSON.stringify(name)}: the table has answered and the clock does not know the time; \`once\` and \`everyMs\` need it`,
  );
}
