import { LockStoreError } from "../../errors.js";
import { follow } from "../../session/abort-listening.js";
import { persist } from "../../session/requests.js";
import { storeFailure } from "../failures.js";
const ATTEMPT_MS = 5_000;
export const FIRST_ANSWER_MS = 10_000;
const PAUSE_MS = 500;
const LEAST_LOOK_MS = 50;
export class AdminRequests {
    tableName;
    #options;
    #startedAt;
    #answersBefore;
    constructor(options) {
        this.tableName = options.tableName;
        this.#options = options;
        this.#startedAt = options.requests.clock.atMost();
        this.#answersBefore = options.requests.scheduler.answers;
    }
    async ask(action, send) {
        const { requests, signal, timeoutMs } = this.#options;
        const isAnswered = () => requests.scheduler.answers > this.#answersBefore;
        const until = () => this.#startedAt + (isAnswered() ? timeoutMs : Math.min(timeoutMs, FIRST_ANSWER_MS));
        const persistence = { kind: "read", until, firstTimeoutMs: ATTEMPT_MS, endSignal: signal };
        const attempt = async (ends) => {
            const either = new AbortController();
            const stopFollowing = follow([ends, signal], (reason) => either.abort(reason));
            try {
                return await send(either.signal);
            }
            catch (error) {
                throw storeFailure(error, { action, tableName: this.tableName });
            }
            finally {
                stopFollowing();
            }
        };
        return await persist(requests, persistence, attempt).catch((error) => {
            signal?.throwIfAborted();
            throw error;
        });
    }
    async pause(because) {
        const { requests, signal, timeoutMs } = this.#options;
        const { clock } = requests;
        const leftMs = Math.max(0, this.#startedAt + timeoutMs - clock.atMost());
        if (leftMs >= PAUSE_MS + LEAST_LOOK_MS)
            return await clock.sleep(PAUSE_MS, signal);
        await clock.sleep(leftMs, signal);
        const message = `Table ${this.tableName} is not ready after ${timeoutMs} ms: ${because}`;
        throw new LockStoreError(message, { transient: true });
    }
}
export const isNotImplemented = (error) => isCausedBy(error, "UnknownOperationException");
export function isCausedBy(error, ...names) {
    return error instanceof LockStoreError && names.includes(error.cause?.name ?? "");
}
