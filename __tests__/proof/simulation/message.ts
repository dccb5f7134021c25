import type { Address } from "../../../lib/protocol/addresses.js";
import type { Take, Transfer, Write } from "../../../lib/protocol/writes.js";
import type { Message } from "../../support/message.js";

/** The rows that a message is about; none for a query. */
export function addressesOf(message: Message): readonly Address[] {
  switch (message.kind) {
    case "write":
      return [message.write.at];
    case "writeAll":
      return message.takes.map(({ at }) => at);
    case "renewAll":
      return message.renewals.map(({ at }) => at);
    case "read":
      return [message.at];
    case "query":
      return [];
    case "transact":
      return [message.writes.guard.at];
    default:
      return message satisfies never;
  }
}

/** The takes in a message: one, those of a set, or none. */
export function takesOf(message: Message): readonly Take[] {
  if (message.kind === "writeAll") return message.takes;
  return message.kind === "write" && message.write.kind === "take" ? [message.write] : NONE;
}

const NONE: readonly Take[] = [];

/** The writes in a message by which a row gets another uuid. */
export function acquiresOf(message: Message): readonly (Take | Transfer)[] {
  if (message.kind === "writeAll") return message.takes;
  if (message.kind !== "write") return [];
  const { write } = message;
  return write.kind === "take" || write.kind === "reissue" || write.kind === "transfer" ? [write] : [];
}

/** The transfers in a message: of a lock that is handed off, or resumed. */
export function transfersOf(message: Message): readonly Transfer[] {
  return acquiresOf(message).filter((write): write is Transfer => write.kind === "transfer");
}

/** An unlock by force, as opposed to a release. */
export function isForced(write: Write): boolean {
  return write.kind === "vacate" && (write.leaves.kind === "untilExpires" || write.leaves.kind === "kept");
}
