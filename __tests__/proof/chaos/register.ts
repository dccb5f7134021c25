import type { DynamoDBClient, TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { Shelf } from "./shelf.js";

/** One line that a section wrote while it held the lock, as far as it could tell. */
export interface Line {
  /** Its place in the log, from 1. No two lines share one. */
  readonly place: number;
  readonly section: string;
  /** Which of the section's lines it is, from 1. */
  readonly step: number;
  /** The line before it, as its writer read it. */
  readonly after: string;
  /** Stopwatch readings right before and right after the `assertHeld()` that let it pass. */
  readonly checkedFrom: number;
  readonly checkedTo: number;
  /** The fencing token of its section, where the lock has one. */
  readonly token?: string | undefined;
  /** Of a guarded line: a stopwatch reading before its first copy left. */
  readonly sentAt?: number | undefined;
  /** Of a line in the log of both sides of a shared mutex: the place of the last exclusive line when its section began. */
  readonly first?: number | undefined;
  /** Of an exclusive line there: how many lines of the shared side its writer had read since the exclusive one before. */
  readonly seen?: number | undefined;
}

/** A log that a section can write a line into. */
export interface Log {
  /** The last line, as of now. */
  last(): Promise<Line | undefined>;
  /** @returns the line that is now in this place: this one, unless another had it before. */
  put(line: Line): Promise<Line>;
}

export function idOf({ section, step }: Pick<Line, "section" | "step">): string {
  return `${section}#${step}`;
}

/** Sort keys in the order of the places. */
export const placeKey = (place: number): string => String(place).padStart(12, "0");

/** What keeps the lines of a log. */
export const linesOf = (client: DynamoDBClient, tableName: string, logName: string): Shelf<Line> =>
  new Shelf(client, tableName, `log of ${logName}`);

/**
 * A log in the table that is one compare-and-set register: whoever wants to write line n + 1 must have read line n, and
 * the table lets only one of them.
 */
export class Register implements Log {
  readonly #lines: Shelf<Line>;

  constructor(lines: Shelf<Line>) {
    this.#lines = lines;
  }

  async last(): Promise<Line | undefined> {
    return await this.#lines.newest();
  }

  async put(line: Line): Promise<Line> {
    return await this.#lines.put(placeKey(line.place), line);
  }

  /** What puts this line where there is none yet. */
  itemsOf(line: Line): readonly TransactWriteItem[] {
    return [{ Put: this.#lines.putOf(placeKey(line.place), line) }];
  }
}
