import { hasGuards, type Limits } from "./limits.js";
import type { Message, Sent } from "./messages.js";
import { type Rows, rowsText, rowText } from "./rows.js";
import { type Claimant, isAwaited, type Request, type State } from "./state.js";

/** Beyond this many, what is known is forgotten: most of it belongs to states that were left long ago. */
const MOST_KNOWN = 50_000;

/**
 * The same key for states from which the same may follow. What cannot matter any more is left out: a message that cannot
 * be applied, a count of what is not to be done again, a stamp that nothing asks for. That uuids are fresh is assumed.
 */
export class StateKeys {
  readonly #limits: Limits;
  readonly #hasGuards: boolean;
  /** Most steps change one claimant alone, and many states have the same rows. */
  readonly #known = new Map<Claimant | Rows, string>();
  /** Short names of long texts. */
  readonly #names = new Map<string, string>();

  constructor(limits: Limits) {
    this.#limits = limits;
    this.#hasGuards = hasGuards(limits);
  }

  of(state: State): string {
    const { time, rows, network, lateCopies, crashes, begun, exclusive, stale, tokens, spent, claimants } = state;
    let key = `${time};${this.#rows(rows)};${this.#rows(stale)};${lateCopies};${crashes};${begun};${exclusive};${tokens};${spent};`;
    for (const message of network) if (mayBeApplied(state, message)) key += `${message.id},`;
    for (const uuid of state.ended) if (this.#hasGuards || isRemembered(claimants, uuid)) key += `${uuid},`;
    for (let who = 0; who < claimants.length; who += 1) key += `/${this.#claimant(claimants[who] as Claimant, who)}`;
    return key;
  }

  #claimant(claimant: Claimant, who: number): string {
    return this.#known.get(claimant) ?? this.#name(claimant, claimantText(claimant, this.#limits, who));
  }

  #rows(rows: Rows): string {
    return this.#known.get(rows) ?? this.#name(rows, rowsText(rows));
  }

  #name(of: Claimant | Rows, text: string): string {
    let name = this.#names.get(text);
    if (name === undefined) {
      name = this.#names.size.toString(36);
      this.#names.set(text, name);
    }
    if (this.#known.size > MOST_KNOWN) this.#known.clear();
    this.#known.set(of, name);
    return name;
  }
}

/** The copy of a request that is under way, or may be sent again, is in its claimant's text. */
function mayBeApplied(state: State, message: Message): boolean {
  if (isAwaited(state, message)) return true;
  const { lateCopies, claimants, rows } = state;
  if (lateCopies === 0) return false;
  // With one late copy left, what has gone from the table does not come back by another.
  const uuid = uuidMetBy(message.write);
  if (uuid === undefined || lateCopies > 1) return true;
  return Object.values(rows).some((row) => row.uuid === uuid) || isRemembered(claimants, uuid);
}

/** The uuid that a write must meet on its row. */
function uuidMetBy(write: Sent): string | undefined {
  if (write.kind === "take") return undefined;
  if (write.kind === "remove") return write.seenUuid;
  return "from" in write ? write.from : write.uuid;
}

function isRemembered(claimants: readonly Claimant[], uuid: string): boolean {
  return claimants.some(({ lease, request }) => {
    if (lease?.uuid === uuid) return true;
    return request !== undefined && "uuid" in request.message.write && request.message.write.uuid === uuid;
  });
}

function claimantText(it: Claimant, limits: Limits, who: number): string {
  const { host, flags, lease, request } = it;
  const isLast = it.taken >= (limits.takes[who] ?? 0) && it.resumed >= limits.resumes;
  const requestText = request === undefined ? "" : textOf(request);
  const isPassed = request?.message.write.kind === "reissue" || request?.message.write.kind === "transfer";
  const mayBegin = lease?.section !== 0 || lease.enters || isPassed;
  // All that is left is to release.
  if (isLast && request?.message.write.kind === "vacate") return requestText;
  if (isLast && lease === undefined && request === undefined) return "";
  if (isLast && !mayBegin) return `${lease.uuid}|${requestText}`;
  let text = `${host.side},${host.ttlMs},${host.rate},${host.takeover},${it.missed},${it.jumped},`;
  text += `${it.taken},${it.renewed},${it.guards},${it.reissued},${it.handedOff},${it.resumed}|`;
  for (const { at, row, since } of it.seen) text += `${at.sort}=${rowText(row)},${since},`;
  if (it.look !== undefined) text += `|${it.look.askedAt},${it.look.shown},${rowText(it.look.row)}`;
  if (flags !== undefined) text += `|flags ${rowsText(flags.rows)}${flags.earliest},${flags.askedAt}`;
  if (lease !== undefined) {
    const { uuid, fence, firstStamp, expires, lastStamp, end, section, enters, guarded } = lease;
    text += `|lease ${uuid},${fence},${end},${section},${enters},${guarded}`;
    if (hasGuards(limits) || limits.handOffs > 0) text += `,${firstStamp},${expires}`;
    if (limits.reissues > 0 || it.renewed < (limits.renewals[who] ?? 0)) text += `,${lastStamp}`;
  }
  return `${text}|${requestText}`;
}

function textOf({ message, sentAt, repeated, phase, answer, applied }: Request): string {
  const isRelease = message.write.kind === "vacate";
  let text = `${message.id},${sentAt},${repeated},${phase}`;
  if (isRelease) text += `,${applied}`;
  if (answer === undefined) return text;
  if (answer.kind === "applied") return `${text},applied ${answer.drawn}`;
  return `${text},refused ${isRelease ? answer.by?.uuid : rowText(answer.by)}`;
}
