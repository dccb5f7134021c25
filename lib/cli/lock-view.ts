import type { Bounds, LockInfo } from "../index.js";

/**
 * What a row says of its lock at this moment. `held`: somebody has it. `handed-off`: nobody has it, and whoever has the token
 * of the hand-off may go on with it. `expired`: its holder's lease is over, and anybody
 * may take it. `blocked`: nobody has it, and nobody may take it yet: parked by `--at-least`, or unlocked by force. `free`: its
 * row is kept for what it remembers. `bad`: its row is not one that this library writes, and nobody takes it.
 */
type LockViewState = "held" | "handed-off" | "expired" | "blocked" | "free" | "bad";

/** One lock as `ls` and `inspect` show it, and as `--json` prints it. */
export interface LockView {
  readonly name: string;
  readonly kind: LockInfo["kind"];
  readonly state: LockViewState;
  readonly uuid: string | undefined;
  readonly owner: string;
  readonly acquired: Date;
  readonly expires: Date;
  /** Until `expires`, by the table's clock; negative if that has passed; undefined for a free lock. */
  readonly leftMs: number | undefined;
  readonly ttlMs: number;
  readonly tick: number | undefined;
  readonly data: LockInfo["data"];
  /** How many wait in the queue of this name, for a lock of this kind; undefined where they were not counted. */
  readonly waiting: number | undefined;
  /** What is wrong with a bad row, and how to remove it. */
  readonly problem: string | undefined;
}

/** @param bounds the table's time; undefined if nothing is known of it. */
export function viewOf(lock: LockInfo, bounds: Bounds | undefined, waiting?: number): LockView {
  const { name, kind, uuid, owner, acquired, expires, ttlMs, data, tick, problem } = lock;
  const state = stateOf(lock, bounds);
  const now = bounds === undefined ? acquired.getTime() : (bounds.earliest + bounds.latest) / 2;
  const leftMs = state === "free" || state === "bad" ? undefined : Math.round(expires.getTime() - now);
  return { name, kind, state, uuid, owner, acquired, expires, leftMs, ttlMs, tick, data, waiting, problem };
}

function stateOf({ uuid, handedOff, expires, problem }: LockInfo, bounds: Bounds | undefined): LockViewState {
  if (problem !== undefined) return "bad";
  const isOver = expires.getTime() < (bounds?.earliest ?? 1);
  if (uuid === undefined) return isOver ? "free" : "blocked";
  if (isOver) return "expired";
  return handedOff ? "handed-off" : "held";
}

/** Whether nobody else can take it. */
export const isTaken = ({ state }: LockView): boolean => state !== "expired" && state !== "free";

/** By name, then kind, then owner, then age: how old the locks of two hosts are is only known within the bounds of their clocks. */
export function inOrder(views: readonly LockView[]): LockView[] {
  const by = ({ name, kind, owner, acquired }: LockView): string =>
    [name, kind, owner, acquired.toISOString()].join("\0");
  return views
    .map((view) => ({ view, key: by(view) }))
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    .map(({ view }) => view);
}
