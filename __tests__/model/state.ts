import type { Attributes } from "../../lib/protocol/row.js";
import type { Limits } from "./limits.js";
import type { Message } from "./messages.js";
import { NO_ROWS, type Rows, rowsText, rowText } from "./rows.js";
import type { Stopwatches } from "./time.js";

/** A claimant, by its place in a state. */
export type Who = number;

export const nameOf = (who: Who): string => "ABC"[who] ?? String(who);

/** A row as a claimant knows it, and since when it has known exactly this lease, on `atLeast`. */
export interface Seen {
  readonly row: Attributes;
  readonly since: number;
}

/** A read that is under way: first asked, then answered with the row as it was at that moment. */
export interface Look {
  /** On `atLeast`. */
  readonly askedAt: number;
  readonly shown: boolean;
  readonly row: Attributes | undefined;
}

/** What a claimant knows of the row that it has taken. */
export interface Lease {
  readonly uuid: string;
  readonly fence: bigint | undefined;
  /** The first stamp under this uuid, the one that is known to be on the row, and the latest that was ever sent. */
  readonly firstStamp: number;
  readonly expires: number;
  readonly lastStamp: number;
  /** What `leaseEnd` has said of the stamp, on `atMost`; 0 for a lease that is lost. */
  readonly end: number;
  /** The section that relies on it, as a number that grows from section to section; 0 for none. */
  readonly section: number;
  readonly guarded: boolean;
}

/** What the table has said to a copy of a request. */
export type Answer =
  | { readonly kind: "applied"; readonly drawn: bigint | undefined }
  | { readonly kind: "refused"; readonly by: Attributes | undefined };

/** A write whose answer a claimant waits for. */
export interface Request {
  readonly message: Message;
  /** When its first copy left, on `atMost`. */
  readonly sentAt: number;
  /** Whether a copy was given up, and so may still arrive. */
  readonly repeated: boolean;
  /** `silent`: the copy has arrived, and the reply to it is lost. */
  readonly phase: "sent" | "silent" | "answered";
  readonly answer: Answer | undefined;
  /** Whether any copy of it has been applied: what the claimant does not know. */
  readonly applied: boolean;
}

/** One of them, with all that its process knows. It is idle, or has a lease, or ends one. */
export interface Claimant extends Stopwatches {
  readonly taken: number;
  readonly renewed: number;
  readonly guards: number;
  readonly reissued: number;
  readonly seen: Seen | undefined;
  readonly look: Look | undefined;
  readonly lease: Lease | undefined;
  readonly request: Request | undefined;
}

/** All that there is at one moment. States are never changed. */
export interface State {
  /** In ticks. */
  readonly time: number;
  readonly rows: Rows;
  /** Every message that was ever sent, in the order of their numbers: a copy of each may arrive at any later moment. */
  readonly network: readonly Message[];
  readonly lateCopies: number;
  readonly crashes: number;
  /** Uuids that were on the row, and then were not. */
  readonly ended: readonly string[];
  /** How many sections have begun. */
  readonly begun: number;
  readonly claimants: readonly Claimant[];
}

const IDLE = {
  missed: 0,
  jumped: 0,
  taken: 0,
  renewed: 0,
  guards: 0,
  reissued: 0,
  seen: undefined,
  look: undefined,
  lease: undefined,
  request: undefined,
} as const;

/** One for each way in which the hosts are set up: an empty table, and claimants who have done nothing. */
export function beginnings({ hosts, lateCopies, crashes }: Limits): readonly State[] {
  return hosts.map((hostsOfOne) => ({
    time: 0,
    rows: NO_ROWS,
    network: [],
    lateCopies,
    crashes,
    ended: [],
    begun: 0,
    claimants: hostsOfOne.map((host) => ({ ...IDLE, host })),
  }));
}

/** Whether a message's sender waits for an answer to it, or still runs the section that a guard belongs to. */
export function isAwaited(state: State, message: Message): boolean {
  const { request, lease } = claimantOf(state, message.from);
  if (message.write.kind === "check") return lease?.section === message.section;
  return request?.message === message && request.phase === "sent";
}

/**
 * The same text for states from which the same may follow: a message that cannot arrive any more makes no difference.
 * A copy that may be sent again is in its claimant's text.
 */
export function keyOf(state: State): string {
  const { time, rows, network, lateCopies, crashes, ended, begun, claimants } = state;
  let text = `${time};${rowsText(rows)};`;
  for (const message of network) if (lateCopies > 0 || isAwaited(state, message)) text += `${message.id},`;
  text += `;${lateCopies};${crashes};${ended};${begun}`;
  for (const claimant of claimants) text += `/${claimantKey(claimant)}`;
  return text;
}

/** Most steps change one claimant alone. */
const CLAIMANT_KEYS = new WeakMap<Claimant, string>();

function claimantKey(claimant: Claimant): string {
  let key = CLAIMANT_KEYS.get(claimant);
  if (key === undefined) {
    key = claimantText(claimant);
    CLAIMANT_KEYS.set(claimant, key);
  }
  return key;
}

function claimantText(it: Claimant): string {
  const { host } = it;
  let text = `${host.ttlMs},${host.rate},${host.takeover},${it.missed},${it.jumped},`;
  text += `${it.taken},${it.renewed},${it.guards},${it.reissued}|`;
  if (it.seen !== undefined) text += `${rowText(it.seen.row)},${it.seen.since}`;
  if (it.look !== undefined) text += `|${it.look.askedAt},${it.look.shown},${rowText(it.look.row)}`;
  const { lease, request } = it;
  if (lease !== undefined) {
    const { uuid, fence, firstStamp, expires, lastStamp, end, section, guarded } = lease;
    text += `|lease ${uuid},${fence},${firstStamp},${expires},${lastStamp},${end},${section},${guarded}`;
  }
  if (request !== undefined) {
    const { message, sentAt, repeated, phase, answer, applied } = request;
    text += `|${message.id},${sentAt},${repeated},${phase},${applied}`;
    if (answer !== undefined) text += answer.kind === "applied" ? `,${answer.drawn}` : `,${rowText(answer.by)}`;
  }
  return text;
}

export function claimantOf({ claimants }: Pick<State, "claimants">, who: Who): Claimant {
  const claimant = claimants[who];
  if (claimant === undefined) throw new Error(`There is no claimant ${who}`);
  return claimant;
}

export function withClaimant(state: State, who: Who, claimant: Claimant): State {
  const claimants = [...state.claimants];
  claimants[who] = claimant;
  return { ...state, claimants };
}
