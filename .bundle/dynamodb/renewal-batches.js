import { publish } from "../diagnostics.js";
import { LockStoreError } from "../errors.js";
import { onAbort } from "../session/abort-listening.js";
import { BoundedMap } from "../session/bounded-map.js";
import { lacksBatches } from "./failures.js";
const MOST = 25;
const LARGE_BYTES = 10 * 1_024;
const MOST_LARGE = 1_000;
const AGAIN_SHARE = 4;
export class RenewalBatches {
    #sender;
    #large = new BoundedMap(MOST_LARGE);
    #mostAgain = new WeakMap();
    #pending = [];
    #most = 1;
    #isUsable = true;
    constructor(sender) {
        this.#sender = sender;
    }
    note(at, bytes = 0) {
        const key = rowKey(at);
        if (bytes > LARGE_BYTES)
            this.#large.set(key, true);
        else
            this.#large.delete(key);
    }
    write(renewal, signal) {
        if (!this.#isUsable || this.#large.has(rowKey(renewal.at)))
            return this.#sender.one(renewal, signal);
        return new Promise((settle, fail) => {
            if (this.#pending.length === 0)
                void Promise.resolve().then(() => this.#sendPending());
            this.#pending.push({ renewal, signal, settle, fail });
        });
    }
    #sendPending() {
        const pending = this.#pending;
        this.#pending = [];
        let batch = new Batch();
        for (const member of pending) {
            const most = this.#mostAgain.get(member.renewal) ?? this.#most;
            if (member.signal.aborted)
                member.fail(member.signal.reason);
            else if (!batch.add(member, most)) {
                void this.#send(batch.members);
                batch = new Batch();
                batch.add(member, most);
            }
        }
        void this.#send(batch.members);
    }
    async #send(batch) {
        const [only] = batch;
        if (only === undefined)
            return;
        if (batch.length === 1) {
            const answer = this.#sender.one(only.renewal, only.signal);
            only.settle(answer);
            return await answer.then(() => this.#answered(1), () => undefined);
        }
        const signals = batch.map(({ signal }) => signal);
        const request = abortedWithAll(signals);
        try {
            const renewals = batch.map(({ renewal }) => renewal);
            const outcomes = await this.#sender.all(renewals, request.signal, signals);
            this.#answered(batch.length);
            for (const [index, member] of batch.entries())
                this.#settle(member, outcomes[index]);
        }
        catch (error) {
            const mostAgain = Math.max(1, Math.floor(batch.length / AGAIN_SHARE));
            for (const { renewal } of batch)
                this.#mostAgain.set(renewal, mostAgain);
            for (const member of batch)
                this.#settle(member, error);
        }
        finally {
            request.end();
        }
    }
    #answered(count) {
        this.#most = Math.min(MOST, Math.max(this.#most, 2 * count));
    }
    #settle(member, outcome) {
        if (!(outcome instanceof Error))
            member.settle(outcome);
        else if (!(outcome instanceof LockStoreError && lacksBatches(outcome)))
            member.fail(outcome);
        else {
            if (this.#isUsable)
                publish("dynamutex:one-by-one", { cause: outcome });
            this.#isUsable = false;
            if (member.signal.aborted)
                member.fail(outcome);
            else
                member.settle(this.#sender.one(member.renewal, member.signal));
        }
    }
}
class Batch {
    members = [];
    #keys = new Set();
    #most = MOST;
    add(member, most) {
        const key = rowKey(member.renewal.at);
        this.#most = Math.min(this.#most, most);
        if (this.members.length >= this.#most || this.#keys.has(key))
            return false;
        this.members.push(member);
        this.#keys.add(key);
        return true;
    }
}
function abortedWithAll(signals) {
    const all = new AbortController();
    let open = signals.length;
    const stops = signals.map((signal) => onAbort(signal, () => {
        open -= 1;
        if (open === 0)
            all.abort(signal.reason);
    }));
    return { signal: all.signal, end: () => stops.forEach((stop) => void stop()) };
}
const rowKey = ({ name, sort }) => `${sort}/${name}`;
