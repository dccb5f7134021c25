import type { Condition, Values } from "./conditions.js";
import { all, any, equal, greater, isString, less, missing, NO_ITEM } from "./conditions.js";
import { HAS_EXPIRED, IS_SEEN_LEASE, IS_UNCHANGED_HOLD, IS_UNCHANGED_LEASE } from "./may-take.js";
import { type Attributes, FORMAT, IS_COUNTED, IS_OURS, type Memory, type Row } from "./row.js";
import type { Count, Effect, PutResult, Take, TokenDraw, Transfer, Vacate, Write } from "./writes.js";

/** How long after its lease a row may stay before DynamoDB's TTL feature removes it. */
const PURGE_AFTER_MS = 7 * 24 * 60 * 60 * 1_000;

const IS_OUR_FORMAT = equal("format", FORMAT);

const REMEMBERS_NOTHING = all(missing("fence"), missing("tick"), missing("result"));

const REMEMBERS_NO_TICK = missing("tick");

/** What the take of a flight respects. A flight leaves a result on the row, so its take respects at least a fence. */
type Flying = `${Exclude<Memory, "nothing">}${"SameResult" | "NoResult"}`;

/** Neither this tick nor a later one was granted. The take that asks for it writes the tick, so a late copy is refused. */
const IS_LATER_TICK = any(missing("tick"), less("tick", { value: "tick" }));

/** The row still has the flight's result that was seen; or it still has none. */
const IS_SAME_RESULT = equal("result.id", { value: "resultId" });
const HAS_NO_RESULT = missing("result.id");

/** This tick is due again, and as many runs of it have begun as were seen. */
const IS_DUE = all(
  equal("tick", { value: "tick" }),
  equal("due", { value: "tick" }),
  equal("attempt", { value: "seenAttempt" }),
);

type Tick = "newTick" | "dueTick" | "sameAttempt";

/** The form in which a write draws a token, if it draws one. */
type Form = "drawsNone" | "behind" | "counts";

const formOf = (token: TokenDraw | undefined): Form => {
  if (token === undefined) return "drawsNone";
  return token.isBehind ? "behind" : "counts";
};

/** The row's token is behind the table's time, or it is not. */
const IS_BEHIND = less("fence", { value: "least" });
const NOT_BEHIND = [greater("fence", { value: "least" }), equal("fence", { value: "least" })];

/** What a take in each form asks of the row's token. */
const ASKED_OF_TOKEN: Readonly<Record<Form, readonly Condition[]>> = {
  drawsNone: [],
  behind: [IS_BEHIND],
  counts: [any(missing("fence"), ...NOT_BEHIND)],
};

/**
 * The conditions of a take, by what is known of the row, and by what the take respects: a put would replace everything that the
 * row remembers, and a purge date would end a tick.
 */
const takesOver = (
  isOver: Condition,
  ofToken: readonly Condition[] = [],
): Readonly<Record<Memory | Tick | Flying, Condition>> => {
  const where = (...more: readonly Condition[]): Condition => any(NO_ITEM, all(IS_OURS, ...more, ...ofToken, isOver));
  return {
    fenceSameResult: where(REMEMBERS_NO_TICK, IS_SAME_RESULT),
    fenceNoResult: where(REMEMBERS_NO_TICK, HAS_NO_RESULT),
    tickSameResult: where(IS_SAME_RESULT),
    tickNoResult: where(HAS_NO_RESULT),
    nothing: where(REMEMBERS_NOTHING),
    fence: where(REMEMBERS_NO_TICK),
    tick: where(),
    newTick: where(IS_LATER_TICK),
    dueTick: where(IS_DUE),
    // This take does not change the number, so once a run has begun, the number cannot refuse a late copy. The condition on the
    // uuid that the take replaces does.
    sameAttempt: any(NO_ITEM, all(IS_OURS, IS_DUE, ...ofToken, IS_SEEN_LEASE)),
  };
};
const inEachForm = <Asked>(ask: (form: Form) => Asked): Readonly<Record<Form, Asked>> => ({
  drawsNone: ask("drawsNone"),
  behind: ask("behind"),
  counts: ask("counts"),
});
const TAKES_EXPIRED = inEachForm((form) => takesOver(HAS_EXPIRED, ASKED_OF_TOKEN[form]));
const TAKES_UNCHANGED_LEASE = inEachForm((form) => takesOver(IS_UNCHANGED_LEASE, ASKED_OF_TOKEN[form]));
const TAKES_UNCHANGED_HOLD = inEachForm((form) => takesOver(IS_UNCHANGED_HOLD, ASKED_OF_TOKEN[form]));

/** Held by the acquisition that writes. */
const IS_MINE = all(equal("uuid", { value: "uuid" }), IS_OUR_FORMAT);

/** Held by the writer, on a lease that ends earlier than the one it writes. */
const IS_MINE_AND_EARLIER = all(IS_MINE, less("expires", { value: "expires" }));

const IS_MINE_TO_DELETE = all(IS_MINE, REMEMBERS_NOTHING);
const IS_LEASE_AS_SEEN = all(IS_OURS, IS_SEEN_LEASE, REMEMBERS_NOTHING);
const IS_HOLD_AS_SEEN = all(IS_OURS, missing("uuid"), equal("expires", { value: "seenExpires" }), REMEMBERS_NOTHING);

/** There is no item, or this library wrote it. */
const IS_NOT_FOREIGN = any(NO_ITEM, IS_OURS);

const IS_SOMEBODYS = all(IS_OURS, isString("uuid"));

/** No counter yet, or one that this library wrote. */
const IS_COUNTER = any(NO_ITEM, all(IS_OUR_FORMAT, IS_COUNTED));

/**
 * Held by the acquisition that sends a transaction, which has renewed: its stamp is later than the first one of this uuid.
 *
 * A late copy of the take can bring the uuid back after the release, with its first stamp and no other, and so can a late copy
 * of a reissue. Where the lock is fenced, such a copy has drawn another token as well.
 */
const IS_STILL_HELD = all(IS_MINE, greater("expires", { value: "after" }));
const IS_STILL_HELD_WITH_TOKEN = all(IS_STILL_HELD, equal("fence", { value: "fence" }));

const withToken = (condition: Condition): Readonly<Record<Form, Condition>> => ({
  drawsNone: condition,
  behind: all(condition, IS_BEHIND),
  counts: all(condition, any(...NOT_BEHIND)),
});
const REISSUES = withToken(IS_MINE_AND_EARLIER);
const TRANSFERS = withToken(IS_MINE);
const TRANSFERS_STILL_HELD = withToken(IS_STILL_HELD);

/** A condition, and what its named values are for one write. */
export interface RowCondition {
  readonly condition: Condition;
  readonly values: Values;
}

/** What a row remembers; nothing, where there is none. */
export function memoryOf(row: Pick<Row, "fence" | "tick" | "result"> | undefined): Memory {
  if (row?.tick !== undefined) return "tick";
  return row?.fence === undefined && row?.result === undefined ? "nothing" : "fence";
}

/** What a take respects: what the row is believed to remember, and what it is about to remember. */
export function memoryAfter({ remembers, token, tick, after }: Take): Memory {
  if (remembers === "tick" || tick !== undefined) return "tick";
  return token === undefined && after === undefined ? remembers : "fence";
}

/**
 * What a write asks of the row that it meets.
 *
 * | the row that is there                       | take  | take, respects fence | respects tick | by uuid (1) | want |
 * |---------------------------------------------|-------|----------------------|---------------|-------------|------|
 * | none                                        | yes   | yes                  | yes           | no          | no   |
 * | not ours: no format, another, other types   | no    | no                   | no            | no (2)      | no   |
 * | ours, may be taken, remembers nothing       | yes   | yes                  | yes           |             |      |
 * | ours, may be taken, remembers a fence       | no    | yes                  | yes           |             |      |
 * | ours, may be taken, remembers a tick        | no    | no                   | yes           |             |      |
 * | the same, the tick is the take's, or later  | no    | no                   | no            |             |      |
 * | the same, for a flight: another result      | no    | no                   | no            |             |      |
 * | the same, the attempt of a claim given up   | no    | no                   | yes, as seen  |             |      |
 * | ours, may not be taken                      | no    | no                   | no            |             |      |
 * | ours, the uuid it names                     | no (3)| no (3)               | no (3)        | yes (4)     |      |
 * | ours, any uuid                              |       |                      |               |             | yes  |
 *
 * (1) Renewals, reissues, transfers, vacating: writes that name the one acquisition that they are about. They remove its uuid,
 * or move `expires` forward, so a late copy of them changes nothing.
 * (2) Of the row's attributes, only format and uuid are compared: nobody else writes a uuid of ours.
 * (3) A take is stamped later than the `earliest` that it is sent with, and no process watches its own acquisition.
 * (4) A renewal or reissue only where it moves `expires` forward; a reissue or transfer that draws a token only where the row
 * has one; a write that draws one only in the form that fits the row's ({@link TokenDraw}); a delete only where the row remembers
 * nothing. A removal asks that as well, and that the row is still exactly as it was seen.
 */
export function askedBy(write: Write): RowCondition {
  switch (write.kind) {
    case "take":
      return askedByTake(write);
    case "renew":
      return { condition: IS_MINE_AND_EARLIER, values: { uuid: write.uuid, expires: write.expires } };
    case "reissue":
    case "transfer":
      return askedByTransfer(write);
    case "vacate":
      return { condition: isDelete(write) ? IS_MINE_TO_DELETE : IS_MINE, values: { uuid: write.uuid } };
    case "record":
      return { condition: IS_MINE, values: { uuid: write.uuid } };
    case "remove": {
      const { seenUuid, seenExpires } = write;
      const condition = seenUuid === undefined ? IS_HOLD_AS_SEEN : IS_LEASE_AS_SEEN;
      return { condition, values: { seenUuid, seenExpires } };
    }
    case "put-result":
      return { condition: IS_NOT_FOREIGN, values: {} };
    case "want":
      return { condition: IS_SOMEBODYS, values: {} };
    case "draw":
      return { condition: IS_COUNTER, values: {} };
    case "check": {
      const { uuid, after, fence } = write;
      if (fence === undefined) return { condition: IS_STILL_HELD, values: { uuid, after } };
      return { condition: IS_STILL_HELD_WITH_TOKEN, values: { uuid, after, fence } };
    }
    default:
      return write satisfies never;
  }
}

function askedByTake(write: Take): RowCondition {
  const { tick, seenAttempt, after, token } = write;
  const { earliest, unchanged } = write.knowledge;
  let takes = TAKES_EXPIRED;
  if (unchanged !== undefined) takes = unchanged.uuid === undefined ? TAKES_UNCHANGED_HOLD : TAKES_UNCHANGED_LEASE;
  const seen = { seenUuid: unchanged?.uuid, seenExpires: unchanged?.expires };
  return {
    condition: takes[formOf(token)][respectedBy(write)],
    values: { earliest, ...seen, tick, seenAttempt, resultId: after?.id, least: token?.least },
  };
}

function respectedBy(write: Take): Memory | Tick | Flying {
  const { tick, attempt, seenAttempt, after, knowledge } = write;
  if (tick !== undefined && seenAttempt === undefined) return "newTick";
  if (tick !== undefined) return attempt === seenAttempt && knowledge.unchanged?.uuid ? "sameAttempt" : "dueTick";
  const memory = memoryAfter(write);
  if (after === undefined || memory === "nothing") return memory;
  return `${memory}${after.id === undefined ? "NoResult" : "SameResult"}`;
}

function askedByTransfer({ kind, from: uuid, after, expires, token }: Transfer): RowCondition {
  const [form, least] = [formOf(token), token?.least];
  if (kind === "reissue") return { condition: REISSUES[form], values: { uuid, expires, least } };
  if (after === undefined) return { condition: TRANSFERS[form], values: { uuid, least } };
  return { condition: TRANSFERS_STILL_HELD[form], values: { uuid, after, least } };
}

/** What a write does to a row that meets its condition. */
export function leftBy(write: Write): Effect {
  switch (write.kind) {
    case "take":
      return takes(write);
    case "renew": {
      const { expires, data, remembers } = write;
      return update({ expires, data }, [], remembers);
    }
    case "reissue":
    case "transfer": {
      const { uuid, expires, ttlMs, owner, token, remembers, handOff } = write;
      return { ...update({ uuid, expires, ttlMs, owner, handOff }, [], remembers), count: counted(token) };
    }
    case "vacate":
      return vacates(write);
    case "record":
      return { kind: "update", set: {}, remove: ["due"] };
    case "remove":
      return { kind: "delete" };
    case "put-result":
      return putsResult(write);
    case "want":
      return { kind: "update", set: { wanted: write.until }, remove: [] };
    case "draw": {
      const set = { format: FORMAT, purge: purgeAt(write.seed) };
      return { kind: "update", set, remove: [], count: { attribute: "n", seed: write.seed } };
    }
    case "check":
      return { kind: "nothing" };
    default:
      return write satisfies never;
  }
}

/**
 * The number that a write has drawn, by what was there before: a fencing token, or the ticket of a place. None where the
 * last one is not a whole number, 0 or more: this library did not write it.
 */
export function drawnBy(write: Write, before: Attributes | undefined): bigint | undefined {
  const count = countOf(write);
  const last = count && before?.[count.attribute];
  if (count === undefined || (typeof last === "number" && !Number.isSafeInteger(last))) return undefined;
  const drawn = next(last, count);
  return typeof drawn === "bigint" && drawn > 0n ? drawn : undefined;
}

const counted = (token: TokenDraw | undefined): Count | undefined => token && { attribute: "fence", ...token };

/** What a write counts up, if it does. */
export function countOf(write: Write): Count | undefined {
  const effect = leftBy(write);
  return effect.kind === "update" ? effect.count : undefined;
}

function takes(write: Take): Effect {
  const { uuid, expires, ttlMs, owner, acquired, data, wanted, token, tick, attempt, permits } = write;
  const respects = memoryAfter(write);
  const row = { format: FORMAT, uuid, expires, ttlMs, owner, acquired, data, wanted, permits };
  if (respects === "nothing") return { kind: "put", attributes: { ...row, purge: purgeAt(expires) } };
  const due = attempt === undefined ? undefined : tick;
  // A take for a tick without `untilSuccess` removes `due` and `attempt` of the tick before it.
  const cleared = tick === undefined ? { wanted, data } : { wanted, data, due, attempt };
  const remove = Object.entries(cleared).flatMap(([name, value]) => (value === undefined ? [name] : []));
  const ran = tick === undefined ? undefined : { tick, ...(attempt !== undefined && { attempt }), owner, at: acquired };
  return { ...update({ ...row, tick, due, attempt, ran }, remove, respects), count: counted(token) };
}

function vacates(write: Vacate): Effect {
  const { leaves, remembers, attempt, isUnbegun } = write;
  const remove = isUnbegun ? ["uuid", "wanted", "ran"] : ["uuid", "wanted"];
  if (isDelete(write)) return { kind: "delete" };
  switch (leaves.kind) {
    case "free":
    case "kept": {
      if (leaves.result === undefined) return { kind: "update", set: { expires: 0, attempt }, remove };
      const { id, made, freshUntil } = leaves.result;
      return update({ expires: 0, result: { id, made } }, ["uuid", "wanted"], remembers, freshUntil);
    }
    case "held":
      return update({ expires: leaves.expires, ttlMs: leaves.ttlMs, attempt }, remove, remembers);
    case "untilExpires":
      return { kind: "update", set: { attempt }, remove: ["uuid"] };
    default:
      return leaves satisfies never;
  }
}

const isDelete = ({ leaves, remembers }: Vacate): boolean =>
  leaves.kind === "free" && leaves.result === undefined && remembers === "nothing";

/**
 * Writes the value as a row like any other, which nobody holds: its uuid is the flight's, and its lease lasts while it is fresh.
 */
function putsResult({ result, owner, data }: PutResult): Effect {
  const { id: uuid, made, freshUntil: expires } = result;
  const row = { format: FORMAT, uuid, expires, ttlMs: expires - made, owner, acquired: made, data };
  return { kind: "put", attributes: { ...row, purge: purgeAt(expires) } };
}

/** An update that stamps a lease, and with it the date of the purge, which a row with a tick must not have. */
function update(
  set: Attributes & { readonly expires: number },
  remove: readonly string[],
  respects: Memory,
  neededUntil: number = set.expires,
): Extract<Effect, { kind: "update" }> {
  if (respects === "tick") return { kind: "update", set, remove: [...remove, "purge"] };
  return { kind: "update", set: { ...set, purge: purgeAt(neededUntil) }, remove };
}

/**
 * One more than the last number, exactly, or `least` where the condition has checked that the last one is behind it. It has
 * checked as well that the last one is a number, or that there is none.
 */
export function next(
  last: unknown,
  { seed, least = 0, isBehind }: Omit<Count, "attribute">,
): number | bigint | undefined {
  if (isBehind && last !== undefined) return BigInt(least);
  const from = last ?? seed;
  if (typeof from === "bigint" || Number.isSafeInteger(from)) return BigInt(from as number | bigint) + 1n;
  return typeof from === "number" ? from + 1 : undefined;
}

/** Epoch seconds, which is what DynamoDB's TTL feature reads: a week after the lease, so that it never ends a live one. */
export function purgeAt(expires: number): number {
  return Math.ceil((expires + PURGE_AFTER_MS) / 1_000);
}
