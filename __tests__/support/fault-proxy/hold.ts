import { deferred } from "./deferred.js";
import type { Exchange } from "./exchange.js";
import type { Fault } from "./faults.js";
import type { RecordedRequest } from "./recorded-request.js";
import type { Rule } from "./rules.js";

/** Requests, or their replies, that wait until a test lets them go. */
export interface Hold {
  /**
   * Resolves with the first that is held: a request when it arrives, a reply when the table has given it.
   * Rejects when it is released, or the proxy closed, before any was.
   */
  readonly arrived: Promise<RecordedRequest>;
  /** All that have been held, in order. */
  readonly held: readonly RecordedRequest[];
  /** Lets go what is held, and holds nothing more. A request is forwarded even when its client has given up. */
  release(): void;
}

/** Holds by a rule that `add` makes. */
export function createHold(at: "request" | "reply", add: (fault: Fault) => Rule): Hold {
  const [released, arrived] = [deferred<void>(), deferred<RecordedRequest>()];
  const held: RecordedRequest[] = [];
  const stop = (exchange: Exchange): Promise<void> => {
    held.push(exchange.request);
    arrived.resolve(exchange.request);
    return exchange.wait(released.promise);
  };
  const apply = async (exchange: Exchange) => {
    if (at === "request") await stop(exchange);
    const reply = await exchange.forward();
    if (at === "reply") await stop(exchange);
    await exchange.answer(reply);
  };
  const rule = add({ kind: "hold", apply });
  rule.done.catch(arrived.reject);
  const release = () => {
    rule.remove();
    released.resolve();
  };
  return { arrived: arrived.promise, held, release };
}
