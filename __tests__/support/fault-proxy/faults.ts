import { deferred } from "./deferred.js";
import type { Exchange } from "./exchange.js";
import { type Reply, withDate } from "./reply.js";

/** What is done to a request instead of forwarding it and answering. Write your own where none here fits. */
export interface Fault {
  readonly kind: string;
  /** Resolves when the fault has had its effect. What it has not answered by then hangs. */
  apply(exchange: Exchange): Promise<void>;
}

async function pass(exchange: Exchange): Promise<void> {
  await exchange.answer(await exchange.forward());
}

/** No fault at all: takes a request out of reach of the rules after this one. */
export const passOn = (): Fault => ({ kind: "passOn", apply: pass });

/** Forwards late; also when the client has given up by then, as a network does. */
export const delay = (ms: number): Fault => ({
  kind: "delay",
  apply: async (exchange) => {
    await exchange.wait(ms);
    await pass(exchange);
  },
});

/** Applied at once, answered late. */
export const delayReply = (ms: number): Fault => ({
  kind: "delayReply",
  apply: async (exchange) => {
    const reply = await exchange.forward();
    await exchange.wait(ms);
    await exchange.answer(reply);
  },
});

/** The socket is cut; the table never sees the request. */
export const resetBefore = (): Fault => ({ kind: "resetBefore", apply: async (exchange) => exchange.cut() });

/** The table applies and answers; then, or once this has happened, the socket is cut. The reply is lost. */
export const resetAfter = (until: Promise<unknown> = Promise.resolve()): Fault => ({
  kind: "resetAfter",
  apply: async (exchange) => {
    await exchange.forward();
    await exchange.wait(until);
    exchange.cut();
  },
});

/** Never answered, never forwarded. */
export const hang = (): Fault => ({ kind: "hang", apply: async () => undefined });

/** Applied, never answered. */
export const hangAfter = (): Fault => ({
  kind: "hangAfter",
  apply: async (exchange) => void (await exchange.forward()),
});

/**
 * Answers with this error. With `applied`, the table has applied the request all the same,
 * which DynamoDB does not rule out for a 500.
 */
export const error = (type: string, message: string, status = 400, options: { applied?: boolean } = {}): Fault => ({
  kind: "error",
  apply: async (exchange) => {
    if (options.applied) await exchange.forward();
    await exchange.fail(status, type, message);
  },
});

export const status500 = (options: { applied?: boolean } = {}): Fault => ({
  ...error("InternalServerError", "The request processing has failed because of an unknown error", 500, options),
  kind: "status500",
});

export const throttle = (
  type: "ThrottlingException" | "ProvisionedThroughputExceededException" = "ThrottlingException",
): Fault => ({ ...error(type, "Rate exceeded"), kind: "throttle" });

/**
 * Another transaction is on the row at this moment. DynamoDB Local never says so.
 * In a transaction, `item` is the index of the action whose row it is.
 */
export const transactionConflict = ({ item = 0 }: { item?: number } = {}): Fault => ({
  kind: "transactionConflict",
  apply: async (exchange) => {
    const message = "Transaction is ongoing for the item";
    const actions = exchange.request.body.TransactItems;
    if (actions === undefined) return exchange.fail(400, "TransactionConflictException", message);
    const reasons = actions.map((_, index) =>
      index === item ? { Code: "TransactionConflict", Message: message } : { Code: "None" },
    );
    const summary = reasons.map(({ Code }) => Code).join(", ");
    return exchange.fail(
      400,
      "TransactionCanceledException",
      `Transaction cancelled, please refer cancellation reasons for specific reasons [${summary}]`,
      { CancellationReasons: reasons },
    );
  },
});

/** What somebody else says who answers at the table's address. */
export interface Strange {
  readonly status?: number;
  readonly headers?: Reply["headers"];
  readonly text?: string;
}

/** Somebody else answers, and nobody else hears of the request. With `applied`, the table has applied it all the same. */
export const stranger = (
  { status = 200, headers = {}, text = "" }: Strange = {},
  { applied = false }: { readonly applied?: boolean } = {},
): Fault => ({
  kind: "stranger",
  apply: async (exchange) => {
    if (applied) await exchange.forward();
    await exchange.answer({ status, headers: { date: new Date().toUTCString(), ...headers }, text, body: {} });
  },
});

/** Applied, and the reply is cut off in the middle. */
export const cutReply = (): Fault => ({
  kind: "cutReply",
  apply: async (exchange) => exchange.answerHalf(await exchange.forward()),
});

/** Passes on what the table answers, changed. */
export const rewriteReply = (rewrite: (reply: Reply) => Reply, kind = "rewriteReply"): Fault => ({
  kind,
  apply: async (exchange) => exchange.answer(rewrite(await exchange.forward())),
});

/** Replaces the Date header. */
export const dateHeader = (date: () => string): Fault => rewriteReply((reply) => withDate(reply, date()), "dateHeader");

/** An exact copy, still in the network. */
export interface Duplicate extends Fault {
  /** Lets the oldest copy arrive at the table, and tells what the table said: nobody else hears of it. */
  deliver(): Promise<Reply>;
}

/** Forwards and answers as usual, and keeps an exact copy: it arrives after so many ms, or when delivered by hand. */
export const duplicate = (afterMs?: number): Duplicate => {
  const taken = deferred<void>();
  const copies: Exchange[] = [];
  const deliver = async () => {
    await taken.promise;
    const copy = copies.shift();
    if (copy === undefined) throw new Error("every copy of this request has been delivered");
    return copy.forward();
  };
  const deliverAfter = (wait: Promise<void>) => wait.then(deliver).catch(() => undefined);
  const apply = async (exchange: Exchange) => {
    await pass(exchange);
    copies.push(exchange);
    taken.resolve();
    if (afterMs !== undefined) void deliverAfter(exchange.wait(afterMs));
  };
  return { kind: "duplicate", apply, deliver };
};
