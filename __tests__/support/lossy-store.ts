import type { Take, Write } from "../../lib/protocol/writes.js";
import { MemoryTable } from "../../lib/testing/memory-table.js";
import { takesOf } from "../simulation/message.js";
import type { Answer, Message } from "./message.js";
import { aborted, MemoryStore } from "./message-store.js";

/**
 * What becomes of a request: `before`: it never arrives. True: it is applied, and the reply is lost, unless somebody else's
 * row refuses it. A promise: it is applied, and answered after that.
 */
type Loss = () => boolean | "before" | Promise<unknown>;

export interface Losses {
  take: Loss;
  renew: Loss;
  vacate: Loss;
  read: Loss;
  /** The takes that were sent. */
  readonly takes: Take[];
}

/** A table in memory whose answers can be lost: the attempt hangs until its sender gives it up. */
export function lossyStore(): { readonly table: MemoryTable; readonly store: MemoryStore; readonly lost: Losses } {
  const never: Loss = () => false;
  const lost: Losses = { take: never, renew: never, vacate: never, read: never, takes: [] };
  const table = new MemoryTable();
  class LossyStore extends MemoryStore {
    protected override async send(message: Message, signal: AbortSignal): Promise<Answer> {
      lost.takes.push(...takesOf(message));
      const loss = lossOf(message, lost)();
      if (loss === "before") return await hang(signal);
      const answer = await super.send(message, signal);
      if (loss === true && !isOfAnother(answer)) return await hang(signal);
      await loss;
      return answer;
    }
  }
  return { table, store: new LossyStore(table), lost };
}

function lossOf(message: Message, lost: Losses): Loss {
  if (message.kind === "writeAll") return lost.take;
  if (message.kind === "read") return lost.read;
  if (message.kind !== "write") return () => false;
  const kinds: Partial<Record<Write["kind"], Loss>> = { take: lost.take, renew: lost.renew, vacate: lost.vacate };
  return kinds[message.write.kind] ?? (() => false);
}

/** Whether a row under another uuid refuses a write. */
function isOfAnother(answer: Answer): boolean {
  if (answer.kind === "writeAll" && answer.outcome.kind === "refused") {
    return answer.outcome.rows.some((row, index) => row !== undefined && row.uuid !== answer.takes[index]?.uuid);
  }
  if (answer.kind !== "write" || answer.outcome.kind !== "refused" || !("uuid" in answer.write)) return false;
  return answer.outcome.row?.uuid !== answer.write.uuid;
}

function hang(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(aborted(signal)), { once: true });
  });
}
