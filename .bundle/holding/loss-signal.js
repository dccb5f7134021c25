export class LossSignal {
    signal;
    #controller = new AbortController();
    constructor(checkDeadline) {
        const { signal } = this.#controller;
        this.signal = signal;
        const checking = (read) => () => {
            checkDeadline();
            return read.call(signal);
        };
        const [aborted, reason, throwIfAborted] = ["aborted", "reason", "throwIfAborted"].map((name) => inherited(signal, name));
        Object.defineProperties(signal, {
            aborted: { get: checking(aborted.get) },
            reason: { get: checking(reason.get) },
            throwIfAborted: { value: checking(throwIfAborted.value) },
        });
    }
    abort(reason) {
        this.#controller.abort(reason);
    }
}
function inherited(signal, name) {
    for (let owner = Object.getPrototypeOf(signal); owner !== null; owner = Object.getPrototypeOf(owner)) {
        const property = Object.getOwnPropertyDescriptor(owner, name);
        if (property !== undefined)
            return property;
    }
    throw new TypeError(`An AbortSignal of this runtime has no ${name}`);
}
