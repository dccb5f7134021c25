import {
  type Address,
  kindOf,
  type RowKind,
  SEMAPHORE_QUEUE,
  SHARED_MUTEX_QUEUE,
} from "../../../lib/protocol/addresses.js";

/** What a program may hold of a name. Both sides of a shared mutex are one lock. */
export type Kind = "mutex" | "permit" | "exclusive" | "shared";

/** A lock, as programs ask for it. */
export interface Asking {
  readonly kind: Kind;
  /** Of the table. */
  readonly name: string;
  /** Tells locks apart: those of different kinds have nothing to do with one another, whatever their names. */
  readonly key: string;
  /** How many permits there are, as far as it knows. Default: as many as anybody knows of. */
  readonly permits?: number | undefined;
  /** How many of them it asks for. Default 1. */
  readonly weight?: number;
}

export function askingFor(kind: Kind, name: string): Asking {
  return { kind, name, key: keyOf(kind, name) };
}

/** What is taken by a row. */
const KINDS: Readonly<Partial<Record<RowKind, Kind>>> = {
  lock: "mutex",
  permit: "permit",
  writer: "exclusive",
  reader: "shared",
};

/** Of which kind the lock is that is taken by a row; undefined for a place. */
export function lockKindOf({ sort }: Pick<Address, "sort">): Kind | undefined {
  const row = kindOf(sort);
  return row && KINDS[row];
}

/** The lock that a row belongs to; undefined for a place. */
export function lockOf(at: Address): Asking | undefined {
  const kind = lockKindOf(at);
  return kind && askingFor(kind, at.name);
}

/** The lock that a place waits for. */
export function lockOfQueue({ name, sort }: Address): Asking {
  if (sort.startsWith(SEMAPHORE_QUEUE.prefix)) return askingFor("permit", name);
  return askingFor(sort.startsWith(SHARED_MUTEX_QUEUE.prefix) ? "exclusive" : "mutex", name);
}

/** The rows of one name may be those of several locks. A mutex is called as in the table. */
function keyOf(kind: Kind, name: string): string {
  if (kind === "mutex") return name;
  return kind === "permit" ? `permits of ${name}` : `sides of ${name}`;
}

export const isSameRow = (one: Address, other: Address): boolean => one.sort === other.sort && one.name === other.name;

/** Like any uuid for the library, and short for people: see {@link shortUuids}. */
export function uuidOf(owner: string, number: number): string {
  return `${uuidStart(owner)}0000-4000-8000-${String(number).padStart(12, "0")}`;
}

/** What the uuids of a process begin with. Owners are a letter up to F, and a digit. */
export function uuidStart(owner: string): string {
  return `${owner.toLowerCase().padEnd(8, "0")}-`;
}

/** A text with its uuids as they are said: `B2-17` is the seventeenth of the second life of host B. */
export function shortUuids(text: string): string {
  return text.replace(/\b([a-f]\d)0{6}-0000-4000-8000-0*(\d+)/g, (_, owner: string, number: string) => {
    return `${owner.toUpperCase()}-${number}`;
  });
}
