import { Calls } from "./calls.js";
import { countRequests, countWarnings, startAtZero, subscribeAll } from "./events.js";
import { labelling } from "./labels.js";
export function measure({ instruments, spans, lockNames, report }) {
    const labels = labelling(lockNames, report);
    if (lockNames !== true)
        startAtZero(instruments);
    const calls = new Calls(instruments, spans, labels);
    const end = subscribeAll(calls.listeners, countRequests(instruments, labels), countWarnings(instruments, labels));
    return {
        [Symbol.dispose]: () => {
            end();
            calls.end();
        },
    };
}
