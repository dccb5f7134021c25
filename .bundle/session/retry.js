import pRetry from "p-retry";
import { LockStoreError } from "../errors.js";
import { NotSent } from "./backlog.js";
const FIRST_PAUSE_MS = 25;
export const LONGEST_PAUSE_MS = 1_000;
const SHARE_OF_REST = 1 / 3;
export function pauseMs({ random }, number, longestMs = LONGEST_PAUSE_MS) {
    return ((0.5 + random()) * Math.min(Math.max(longestMs, FIRST_PAUSE_MS), LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** number));
}
export const LONGEST_ATTEMPT_MS = 3_000;
export function endAfter(clock, ms) {
    const end = clock.atLeast() + ms;
    return () => clock.atMost() + end - clock.atLeast();
}
export function isTransient(error) {
    return error instanceof LockStoreError && error.transient;
}
export function retry(session, persistence, attemptOf) {
    const { clock } = session;
    const { hasLeaseToLose, until, endSignal, worthRetrying = isTransient, onFailure, tried, sleep = clock.sleep.bind(clock), } = persistence;
    const restShare = hasLeaseToLose ? SHARE_OF_REST : Number.POSITIVE_INFINITY;
    const attempt = (number) => attemptOf(number).catch((cause) => {
        throw new FailedAttempt("An attempt failed", { cause });
    });
    return pRetry(attempt, {
        retries: Number.POSITIVE_INFINITY,
        minTimeout: 0,
        onFailedAttempt: async ({ error: { cause: error }, attemptNumber }) => {
            if (endSignal?.aborted && error === endSignal.reason)
                throw tried.failure ?? error;
            if (tried.failure === undefined || !(error instanceof NotSent)) {
                tried.failure = error;
                onFailure?.(error);
            }
            if (!worthRetrying(tried.failure))
                throw tried.failure;
            const leftMs = until() - clock.atMost();
            if (leftMs > 0) {
                const ms = pauseMs(session, attemptNumber, leftMs * restShare);
                await sleep(Math.min(ms, leftMs), endSignal).catch(() => undefined);
            }
            if (!(until() > clock.atMost()) || endSignal?.aborted)
                throw tried.failure;
        },
    });
}
class FailedAttempt extends Error {
}
class NoAnswer extends LockStoreError {
}
const ADVICE = "check its region, its endpoint and the network to it";
export function noAnswer(ms, { sent, failure } = { sent: 1 }) {
    const attempts = sent === 1 ? "" : ` in ${sent} attempts`;
    const message = `No answer from the table${attempts} within ${Math.round(ms)} ms`;
    const options = { transient: true, answered: false };
    const cause = failure instanceof NoAnswer || failure instanceof NotSent ? failure.cause : failure;
    if (cause === undefined)
        return new NoAnswer(`${message}: ${ADVICE}`, options);
    const said = cause instanceof Error ? cause.message : String(cause);
    return new NoAnswer(`${message}; the last failure before that: ${said}`, { ...options, cause });
}
