import type { Store } from "../../../lib/store.js";

/** What DynamoDB bills a consistent read as one unit for, and an eventually consistent one as half of it. */
const READ_UNIT_BYTES = 4_096;

/** Requests, and what DynamoDB would bill for them. */
export class Meter {
  /** Reads and queries. */
  looks = 0;
  read = 0;
  write = 0;

  reset(): void {
    this.looks = 0;
    this.read = 0;
    this.write = 0;
  }

  /** The store, with every request counted. */
  on(store: Store): Store {
    return new Proxy(store, {
      get: (_target, property) => {
        const member = Reflect.get(store, property) as unknown;
        if (typeof member !== "function") return member;
        return (...args: unknown[]) => this.#count(String(property), args, member.apply(store, args));
      },
    });
  }

  #count(operation: string, args: readonly unknown[], reply: unknown): unknown {
    if (!(reply instanceof Promise)) return reply;
    if (operation !== "read" && operation !== "query") {
      this.write += 1;
      return reply;
    }
    this.looks += 1;
    const consistent = args.some((arg) => (arg as { consistent?: boolean }).consistent === true);
    return reply.then((rows: unknown) => {
      const bytes = sizeOf(rows);
      this.read += Math.max(1, Math.ceil(bytes / READ_UNIT_BYTES)) * (consistent ? 1 : 0.5);
      return rows;
    });
  }
}

/** Roughly: names of attributes and values as text. */
function sizeOf(rows: unknown): number {
  return (
    JSON.stringify(rows, (_key, value) => (typeof value === "bigint" ? `${value}`.padStart(38, "0") : value))?.length ??
    0
  );
}
