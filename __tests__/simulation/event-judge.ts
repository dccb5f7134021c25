import type { Diagnostics } from "../../lib/diagnostics.js";

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
  /** By uuid; none for one whose last section has ended in time. */
  readonly #stages = new Map<string, "acquired" | "lost" | "over">();

  /** @returns what is wrong with a message. */
  wrong(name: string, { uuid }: { readonly uuid?: string }): string | undefined {
    if (uuid === undefined || !SECTION_EVENTS.includes(name)) return undefined;
    const event = name as SectionEvent;
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

  /** The uuids of sections that have begun and not ended. */
  get open(): readonly string[] {
    return [...this.#stages].filter(([, stage]) => stage !== "over").map(([uuid]) => uuid);
  }
}
