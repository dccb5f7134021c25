import { type Address, permitOf } from "../../../lib/protocol/addresses.js";
import type { Row } from "../../../lib/protocol/row.js";
import type { GuardedWrites } from "../../../lib/store.js";
import type { Holding } from "./invariants.js";
import { lockOf } from "./locks.js";
import { entryOf, Watcher } from "./watcher.js";

/** Watches whose guarded writes are applied. */
export class GuardJudge extends Watcher {
  readonly #committed = new Set<string>();
  /** By what they hold, those that have begun, the last of them last. Each permit is one of its own. */
  readonly #sections = new Map<string, { readonly id: string; readonly isShared: boolean }[]>();

  took({ asking: { kind, key }, lock: { permit }, id }: Holding): void {
    entryOf(this.#sections, partOf(key, permit), () => []).push({ id, isShared: kind === "shared" });
  }

  /**
   * A late copy of the take, then one of a renewal, and then one of the transaction itself, all after the release, make
   * a row that nothing tells from the holder's. What is promised is that two of them are not enough; a token is.
   *
   * @param hadGone whether the uuid had been on the row, and then was not.
   * @returns what is wrong.
   */
  committed({ guard, token, items }: GuardedWrites, row: Row | undefined, hadGone: boolean): string | undefined {
    if (this.#committed.has(token)) return undefined;
    this.#committed.add(token);
    this.count("guarded writes");
    const isFollowed = this.#isFollowed(guard.at, items);
    if (!hadGone && !isFollowed) return undefined;
    const isChain = hadGone && guard.fence === undefined && row?.uuid === guard.uuid && row.expires > guard.after;
    if (!isChain) return `${guard.uuid} ${hadGone ? "had gone" : "is another section's by now"}`;
    this.count("guarded writes after three late copies in a row");
    return undefined;
  }

  refused({ guard, items }: GuardedWrites): void {
    if (this.#isFollowed(guard.at, items)) this.count("late writes of a section that was followed: refused");
  }

  /** Whether another section has begun since, which this one excludes: others of the shared side do not count for theirs. */
  #isFollowed(at: Address, items: GuardedWrites["items"]): boolean {
    const sections = this.#sections.get(partOf(lockOf(at)?.key ?? "", permitOf(at.sort))) ?? [];
    const index = sections.findIndex(({ id }) => id === items[0]?.Put?.Item?.id?.S);
    const isShared = sections[index]?.isShared ?? false;
    return index < 0 || sections.slice(index + 1).some((later) => !isShared || !later.isShared);
  }
}

const partOf = (key: string, permit: number | undefined): string =>
  permit === undefined ? key : `${permit} of the ${key}`;
