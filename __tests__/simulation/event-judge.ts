import type { Diagnostics } from "../../lib/diagnostics.js";
import { entryOf } from "./watcher.js";

type SectionEvent = Extract<keyof Diagnostics, "dynamutex:acquired" | "dynamutex:lost" | "dynamutex:released">;

const SECTION_EVENTS: readonly string[] = [
  "dynamutex:acquired",
  "dynamutex:lost",
  "dynamutex:released",
] satisfies SectionEvent[];

/**
 * Judges what the channels tell of sections: each is acquired, then lost at most once, then released. Sections that share a
 * uuid come one after the other, and none after one that was lost.
 */
export class EventJudge {
  readonly #isShared: (uuid: string) => boolean;
  /** Of the rows of the shared side, which several sections may run on at once: how many have told what. */
  readonly #shared = new Map<string, { acquired: number; lost: number; released: number }>();
  /** By uuid; none for one whose last section has ended in time. */
  readonly #stages = new Map<string, "acquired" | "lost" | "over">();

  /** @param isShared whether a uuid is that of a row of the shared side. */
  constructor(isShared: (uuid: string) => boolean) {
    this.#isShared = isShared;
  }

  /** @returns what is wrong with a message. */
  wrong(name: string, { uuid }: { readonly uuid?: string }): string | undefined {
    if (uuid === undefined || !SECTION_EVENTS.includes(name)) return undefined;
    const event = name as SectionEvent;
    if (this.#isShared(uuid)) return this.#wrongWithShared(event, uuid);
    const stage = this.#stages.get(uuid);
    switch (event) {
      case "dynamutex:acquired":
        this.#stages.set(uuid, "acquired");
        return stage === undefined ? undefined : `${uuid} is acquired, although it is ${stage}`;
      case "dynamutex:lost":
        this.#stages.set(uuid, "lost");
        return stage === "acquired" ? undefined : `${uuid} is lost, although it is ${stage ?? "nobody's"}`;
      case "dynamutex:released":
        if (stage === "acquired") this.#stages.delete(uuid);
        else this.#stages.set(uuid, "over");
        return stage === "acquired" || stage === "lost" ? undefined : `${uuid} is released, although it is nobody's`;
      default:
        return event satisfies never;
    }
  }

  /** Each is acquired, lost at most once, and released; none is acquired after a loss. */
  #wrongWithShared(event: SectionEvent, uuid: string): string | undefined {
    const counts = entryOf(this.#shared, uuid, () => ({ acquired: 0, lost: 0, released: 0 }));
    const joinsTheLost = event === "dynamutex:acquired" && counts.lost > 0;
    counts[event === "dynamutex:acquired" ? "acquired" : event === "dynamutex:lost" ? "lost" : "released"] += 1;
    const { acquired, lost, released } = counts;
    if (joinsTheLost) return `${uuid} is acquired, although it is lost`;
    return lost > acquired || released > acquired ? `${uuid} has told ${JSON.stringify(counts)}` : undefined;
  }

  /** The uuids of sections that have begun and not ended. */
  get open(): readonly string[] {
    const shared = [...this.#shared].filter(([, { acquired, released }]) => acquired > released);
    return [...[...this.#stages].filter(([, stage]) => stage !== "over"), ...shared].map(([uuid]) => uuid);
  }
}
