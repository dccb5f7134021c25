import { entryOf } from "./watcher.js";

/** The sections that share a uuid. */
interface Sections {
  acquired: number;
  /** How many of them have not ended. */
  running: number;
  lost: number;
}

/**
 * Judges what the channels tell of sections: each is acquired, then lost at most once, then released, and none is acquired
 * after one that was lost. Those that share a uuid come one after the other, but for those of a shared side.
 */
export class EventJudge {
  readonly #isShared: (uuid: string) => boolean;
  readonly #sections = new Map<string, Sections>();

  /** @param isShared whether a uuid is that of a row of the shared side. */
  constructor(isShared: (uuid: string) => boolean) {
    this.#isShared = isShared;
  }

  /** @returns what is wrong with a message. */
  wrong(name: string, { uuid }: { readonly uuid?: string }): string | undefined {
    if (uuid === undefined) return undefined;
    const sections = entryOf(this.#sections, uuid, () => ({ acquired: 0, running: 0, lost: 0 }));
    const { acquired, running, lost } = sections;
    const isRight = this.#tells(name, sections, this.#isShared(uuid));
    return isRight ? undefined : `${name} of ${uuid}, of which ${running} of ${acquired} ran, and ${lost} were lost`;
  }

  /** @returns whether it may be told. */
  #tells(name: string, sections: Sections, isShared: boolean): boolean {
    const { acquired, running, lost } = sections;
    switch (name) {
      case "dynamutex:acquired":
        sections.acquired += 1;
        sections.running += 1;
        return lost === 0 && (running === 0 || isShared);
      case "dynamutex:lost":
        sections.lost += 1;
        return running > 0 && lost < (isShared ? acquired : 1);
      case "dynamutex:released":
        sections.running -= 1;
        return running > 0;
      default:
        return true;
    }
  }

  /** The uuids of sections that have begun and not ended. */
  get open(): readonly string[] {
    return [...this.#sections].flatMap(([uuid, { running }]) => (running > 0 ? uuid : []));
  }
}
