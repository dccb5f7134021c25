import { setMaxListeners } from "node:events";
const signals = new WeakMap();
export function onAbort(signal, listener) {
    const listening = signals.get(signal) ?? startListening(signal);
    const own = () => listener();
    listening.listeners.add(own);
    return () => {
        listening.listeners.delete(own);
        if (listening.listeners.size === 0 && signals.get(signal) === listening)
            listening.stop();
    };
}
export function follow(followed, abort) {
    const stops = followed.map((signal) => {
        if (signal === undefined)
            return undefined;
        if (!signal.aborted)
            return onAbort(signal, () => abort(signal.reason));
        abort(signal.reason);
        return undefined;
    });
    return () => {
        for (const stop of stops)
            stop?.();
    };
}
export async function awaitShared(endSignal, shared) {
    return await new Promise((resolve, reject) => {
        const stop = onAbort(endSignal, () => reject(endSignal.reason));
        shared.finally(stop).then(resolve, reject);
    });
}
function startListening(signal) {
    const listeners = new Set();
    const abort = () => {
        signals.delete(signal);
        for (const listener of listeners)
            listener();
    };
    const stop = () => {
        signals.delete(signal);
        signal.removeEventListener("abort", abort);
    };
    const listening = { listeners, stop };
    signals.set(signal, listening);
    signal.addEventListener("abort", abort, { once: true });
    return listening;
}
export function listenWithoutBound(signal) {
    try {
        setMaxListeners(0, signal);
    }
    catch {
    }
}
