import type { Address } from "../../../lib/protocol/addresses.js";
import type { Attributes } from "../../../lib/protocol/row.js";
import type { Limits } from "./limits.js";
import type { Message } from "./messages.js";
import { NO_ROWS, type Rows } from "./rows.js";
import type { Stopwatches } from "./time.js";

/** A claimant, by its place in a state. */
export type Who = number;

export const nameOf = (who: Who): string => "ABC"[who] ?? String(who);

/** A row as a claimant knows it, and since when it has known exactly this lease, on `atLeast`. */
export interface Seen {
  readonly at: Address;
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

/** The rows of the other side of a shared mutex, as a look has shown them, and what was known when it left. */
export interface Flags {
  readonly rows: Rows;
  readonly earliest: number;
  /** On `atLeast`. */
  readonly askedAt: number;
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
  /** Its flag stands, on a shared mutex, and no look has shown yet that it may enter. */
  readonly enters: boolean;
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
  readonly handedOff: number;
  readonly resumed: number;
  readonly seen: readonly Seen[];
  readonly look: Look | undefined;
  readonly flags: Flags | undefined;
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
  /** Uuids that were on the row of the mutex, and then were not. */
  readonly ended: readonly string[];
  /** How many sections have begun, where guards tell them apart; and the last of them that was to be alone. */
  readonly begun: number;
  readonly exclusive: number;
  /** The uuids of leases that were handed off, and those that somebody has gone on with. */
  readonly tokens: readonly string[];
  readonly spent: readonly string[];
  /** Each row as it was before it was last written, where a look may show that. */
  readonly stale: Rows;
  readonly claimants: readonly Claimant[];
}

const IDLE = {
  missed: 0,
  jumped: 0,
  taken: 0,
  renewed: 0,
  guards: 0,
  reissued: 0,
  handedOff: 0,
  resumed: 0,
  seen: [],
  look: undefined,
  flags: undefined,
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
    exclusive: 0,
    tokens: [],
    spent: [],
    stale: NO_ROWS,
    claimants: hostsOfOne.map((host) => ({ ...IDLE, host })),
  }));
}

/**
 * Whether a message's sender waits for an answer to it, still runs the section that a guard belongs to, or still waits
 * for the readers whose rows it removes.
 */
export function isAwaited(state: State, message: Message): boolean {
  const { request, lease, taken } = claimantOf(state, message.from);
  if (message.write.kind === "check") return lease?.section === message.section;
  if (message.write.kind === "remove") return lease?.enters === true && taken === message.section;
  return request?.message === message && request.phase === "sent";
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
