import type { Row } from "../../lib/protocol/row.js";
import type { GuardedWrites } from "../../lib/store.js";
import type { Coverage } from "./coverage.js";

/** A section that may write through guards. */
export interface Guarded {
  readonly name: string;
  readonly uuid: string;
  /** Written along with each of its items. */
  readonly id: string;
}

/** Watches whose guarded writes are applied. */
export class GuardJudge {
  readonly #coverage: Coverage;
  readonly #committed = new Set<string>();
  /** By name, those that have begun, the last of them last. */
  readonly #sections = new Map<string, string[]>();

  constructor(coverage: Coverage) {
    this.#coverage = coverage;
  }

  took({ name, id }: Guarded): void {
    const sections = this.#sections.get(name) ?? [];
    sections.push(id);
    this.#sections.set(name, sections);
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
    this.#coverage.count("guarded writes");
    const isFollowed = this.#isFollowed(guard.at.name, items);
    if (!hadGone && !isFollowed) return undefined;
    const isChain = hadGone && guard.fence === undefined && row?.uuid === guard.uuid && row.expires > guard.after;
    if (!isChain) return `${guard.uuid} ${hadGone ? "had gone" : "is another section's by now"}`;
    this.#coverage.count("guarded writes after three late copies in a row");
    return undefined;
  }

  refused({ guard, items }: GuardedWrites): void {
    if (this.#isFollowed(guard.at.name, items))
      this.#coverage.count("late writes of a section that was followed: refused");
  }

  /** Whether another section has begun since. */
  #isFollowed(name: string, items: GuardedWrites["items"]): boolean {
    return this.#sections.get(name)?.at(-1) !== items[0]?.Put?.Item?.id?.S;
  }
}
