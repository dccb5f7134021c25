/// <reference lib="esnext.disposable" preserve="true" />
import { Calls } from "./calls.js";
import { countRequests, countWarnings, startAtZero, subscribeAll } from "./events.js";
import { type LockNames, labelling } from "./labels.js";
import type { Instruments } from "./metrics.js";
import type { Spans } from "./spans.js";

/** What a backend of the metrics brings. */
export interface Backend {
  readonly instruments: Instruments;
  readonly spans: Spans;
  readonly lockNames: LockNames;
  /** Is told of an error of the caller's `lockNames`. */
  readonly report: (message: string, error: unknown) => void;
}

/** Measures all locks of this process. @returns what ends that: nothing waits and nothing is held by its measure then. */
export function measure({ instruments, spans, lockNames, report }: Backend): Disposable {
  const labels = labelling(lockNames, report);
  // With every name a label, nobody knows the time series before there is something to count.
  if (lockNames !== true) startAtZero(instruments);
  const calls = new Calls(instruments, spans, labels);
  const end = subscribeAll(calls.listeners, countRequests(instruments, labels), countWarnings(instruments, labels));
  return {
    [Symbol.dispose]: () => {
      end();
      calls.end();
    },
  };
}
