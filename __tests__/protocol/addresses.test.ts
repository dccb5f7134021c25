import { describe, expect, test } from "@jest/globals";
import {
  kindOf,
  LOCK_SORT,
  lockAt,
  MUTEX_QUEUE,
  PERMITS,
  permitAt,
  permitOf,
  placeAt,
  placesOf,
  type QueueKeys,
  READERS,
  readerAt,
  SEMAPHORE_QUEUE,
  SHARED_MUTEX_QUEUE,
  type SortRange,
  ticketOf,
  WRITER_SORT,
  writerAt,
} from "../../lib/protocol/addresses.js";
import { FOREIGN_SORTS } from "../support/store-cases.js";

const UUID = "01234567-89ab-cdef-0123-456789abcdef";
const LAST_TICKET = 10n ** 38n - 1n;
const QUEUES: readonly (readonly [string, QueueKeys])[] = [
  ["a mutex", MUTEX_QUEUE],
  ["a semaphore", SEMAPHORE_QUEUE],
  ["a shared mutex", SHARED_MUTEX_QUEUE],
];

const isIn = ({ first, last }: SortRange, sort: string): boolean => first <= sort && sort <= last;

describe("the keys of rows", () => {
  test("are what the documentation says", () => {
    const addresses = [lockAt("a"), permitAt("a", 7), writerAt("a"), readerAt("a", UUID), placeAt("a", 7n)];
    expect(addresses.map(({ name, sort }) => `${name} ${sort}`)).toEqual([
      "a lock",
      "a semaphore#0007",
      "a writer",
      `a reader#${UUID}`,
      `a queue#${"7".padStart(38, "0")}`,
    ]);
  });

  test("sort so that places are behind the rows that they wait for, and the counter behind the places", () => {
    const inOrder = [
      LOCK_SORT,
      ...sortsOf(MUTEX_QUEUE).slice(0, 2),
      READERS.first,
      readerAt("a", UUID).sort,
      READERS.last,
      PERMITS.first,
      permitAt("a", 999).sort,
      PERMITS.last,
      ...sortsOf(SEMAPHORE_QUEUE),
      MUTEX_QUEUE.counter,
      WRITER_SORT,
      ...sortsOf(SHARED_MUTEX_QUEUE),
    ];
    expect([...inOrder].sort()).toEqual(inOrder);
    expect(new Set(inOrder).size).toBe(inOrder.length);
  });

  test.each(QUEUES)("of the places of %s are in no range of another kind", (_kind, queue) => {
    const others = QUEUES.flatMap(([, other]) => (other === queue ? [] : [placesOf(other)]));
    for (const sort of sortsOf(queue)) {
      for (const range of [...others, PERMITS, READERS]) expect(isIn(range, sort)).toBe(false);
    }
    expect(isIn(placesOf(queue), queue.counter)).toBe(false);
  });
});

describe("the kind of a row", () => {
  test("follows from its sort key", () => {
    expect(kindOf(LOCK_SORT)).toBe("lock");
    expect(kindOf(WRITER_SORT)).toBe("writer");
    for (const permit of [0, 999, 9_999]) expect(kindOf(permitAt("a", permit).sort)).toBe("permit");
    expect(kindOf(readerAt("a", UUID).sort)).toBe("reader");
    for (const [, queue] of QUEUES) {
      for (const ticket of [0n, LAST_TICKET]) expect(kindOf(placeAt("a", ticket, queue).sort)).toBe("place");
    }
  });

  test.each(FOREIGN_SORTS)("is none for %p, which is no permit and no place either", (sort) => {
    expect([kindOf(sort), permitOf(sort), ticketOf(sort)]).toEqual([undefined, undefined, undefined]);
  });
});

/** A queue's first and last place, and its counter. */
function sortsOf(queue: QueueKeys): [string, string, string] {
  return [placesOf(queue).first, placesOf(queue).last, queue.counter];
}
