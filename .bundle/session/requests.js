import { AsyncResource } from "node:async_hooks";
import { LockStoreError } from "../errors.js";
import { onAbort } from "./abort-listening.js";
import { Backlog, notSent } from "./backlog.js";
import { LONGEST_ATTEMPT_MS, noAnswer, retry } from "./retry.js";
const MOST_WIDTH = 48;
const LEAST_WIDTH = 4;
const RENEWALS_TIMES = 10;
const OTHERS_SHARE = 1 / 4;
const REMEMBERED = 64;
const SLOW_SHARE = 0.95;
const LEAST_ATTEMPT_MS = 50;
const GROWTH = 3;
const PATIENCE_TIMES = 3;
const FIRST_OVERDUE_MS = 250;
const ATTEMPT_SHARE_OF_REST = 2 / 3;
const LATE_SHARE = 1 / 4;
function hasLeaseToLose(kind) {
    return kind === "renewal" || kind === "release";
}
export function firstTimeoutMs(ttlMs) {
    return Math.min(LONGEST_ATTEMPT_MS, Math.max(50, ttlMs / 4));
}
export class Copies {
    sent = 0;
    unanswered = 0;
    count(answer) {
        this.sent += 1;
        this.unanswered += 1;
        const answered = () => {
            this.unanswered -= 1;
        };
        answer.then(answered, (error) => {
            if (error instanceof LockStoreError && error.answered && !error.retried)
                answered();
        });
        return answer;
    }
}
export function persist(session, persistence, request, skipWith = () => undefined) {
    const { clock, scheduler } = session;
    const { kind, until, firstTimeoutMs: firstMs, tried = { since: clock.atLeast(), sent: 0 } } = persistence;
    const isOfLease = hasLeaseToLose(kind);
    let sent = 0;
    const triedMs = () => clock.atLeast() - tried.since;
    const remainingMs = () => Math.max(0, until() - clock.atMost());
    const send = () => {
        let isAtOnce = tried.sent === 0;
        const answer = scheduler.run(persistence, () => {
            const leastMs = isAtOnce ? 0 : Math.min(firstMs, scheduler.quickMs ?? LEAST_ATTEMPT_MS);
            const leftMs = remainingMs();
            if (leftMs === 0 || leftMs < leastMs)
                return Promise.reject(notSent(triedMs()));
            sent += 1;
            tried.sent += 1;
            const lateMs = kind === "renewal" ? leftMs * LATE_SHARE : undefined;
            const controller = new AbortController();
            const copy = skipWith() ?? scheduler.heard(() => request(controller.signal), lateMs);
            const neededMs = Math.max(firstMs * GROWTH ** (sent - 1), PATIENCE_TIMES * (scheduler.slowMs ?? 0));
            const longestMs = Math.max(firstMs, Math.min(LONGEST_ATTEMPT_MS, neededMs));
            const restMs = remainingMs();
            const mostMs = isOfLease ? Math.max(restMs * ATTEMPT_SHARE_OF_REST, scheduler.overdueMs) : longestMs;
            const end = () => {
                const error = noAnswer(triedMs(), tried);
                controller.abort(error);
                return error;
            };
            return bounded(clock, copy, { ms: Math.min(longestMs, mostMs, restMs), cutSignal: persistence.cutSignal, end });
        });
        isAtOnce = false;
        return answer;
    };
    const first = send();
    return first.catch(() => retry(session, { ...persistence, tried, hasLeaseToLose: isOfLease }, (number) => (number === 1 ? first : send())));
}
export function sendOnce(session, asked, request) {
    const deadline = session.clock.atMost() + asked.firstTimeoutMs;
    const once = { deadline, until: () => Number.POSITIVE_INFINITY, worthRetrying: () => false };
    return persist(session, { ...asked, ...once }, request);
}
function bounded(clock, answer, { ms, cutSignal, end }) {
    return new Promise((resolve, reject) => {
        const give = () => reject(end());
        const cancel = clock.alarm(ms, give);
        const stop = cutSignal && onAbort(cutSignal, give);
        const ended = () => {
            cancel();
            stop?.();
        };
        answer.finally(ended).then(resolve, reject);
    });
}
export class Scheduler {
    #clock;
    #backlog;
    #underWay = { renewals: 0, others: 0 };
    #width = MOST_WIDTH;
    #halvedAt = Number.NEGATIVE_INFINITY;
    #latest = [];
    #sorted = [];
    slowMs;
    quickMs;
    #silentSince;
    answers = 0;
    constructor(clock) {
        this.#clock = clock;
        this.#backlog = new Backlog(clock, () => this.#underWay.renewals + this.#underWay.others);
    }
    get overdueMs() {
        return this.slowMs === undefined ? FIRST_OVERDUE_MS : Math.max(LEAST_ATTEMPT_MS, PATIENCE_TIMES * this.slowMs);
    }
    get silentSince() {
        return this.#silentSince ?? this.#clock.atMost();
    }
    get width() {
        return Math.floor(this.#width);
    }
    get renewalWidth() {
        return this.width * RENEWALS_TIMES;
    }
    run(request, send) {
        const { kind, endSignal } = request;
        if (endSignal?.aborted)
            return Promise.reject(endSignal.reason);
        const lane = kind === "renewal" ? "renewals" : "others";
        const [first] = this.#backlog.waiting;
        const isFirst = first === undefined || (kind === "renewal" && first.kind !== "renewal");
        if (isFirst && this.#hasSlot(kind))
            return this.#send(lane, send);
        return this.#backlog.add(request, AsyncResource.bind(() => this.#send(lane, send)));
    }
    async heard(send, lateMs = Number.POSITIVE_INFINITY) {
        const leftAt = this.#clock.atLeast();
        this.#silentSince ??= this.#clock.atMost();
        try {
            const answer = await send();
            this.#answered();
            const tookMs = this.#clock.atLeast() - leftAt;
            this.#remember(tookMs);
            if (tookMs > lateMs)
                this.#narrow(leftAt);
            else
                this.#width = Math.min(MOST_WIDTH, this.#width + 1 / this.#width);
            return answer;
        }
        catch (error) {
            if (error instanceof LockStoreError && error.answered)
                this.#answered();
            if (error instanceof LockStoreError && error.throttled)
                this.#narrow(leftAt);
            throw error;
        }
    }
    #remember(tookMs) {
        this.#latest.push(tookMs);
        this.#sorted.splice(this.#sorted.findLastIndex((other) => other <= tookMs) + 1, 0, tookMs);
        if (this.#latest.length > REMEMBERED)
            this.#sorted.splice(this.#sorted.indexOf(this.#latest.shift()), 1);
        this.slowMs = this.#sorted[Math.ceil(this.#sorted.length * SLOW_SHARE) - 1];
        this.quickMs = this.#sorted[0];
    }
    #answered() {
        this.#silentSince = undefined;
        this.answers += 1;
    }
    #narrow(leftAt) {
        if (leftAt <= this.#halvedAt)
            return;
        this.#width = Math.max(LEAST_WIDTH, this.#width / 2);
        this.#halvedAt = this.#clock.atLeast();
    }
    #hasSlot(kind) {
        const { renewals, others } = this.#underWay;
        if (kind === "renewal")
            return renewals < this.renewalWidth;
        return others < Math.max(this.width * OTHERS_SHARE, this.width - renewals);
    }
    async #send(lane, send) {
        this.#underWay[lane] += 1;
        try {
            return await send();
        }
        finally {
            this.#underWay[lane] -= 1;
            const { waiting } = this.#backlog;
            while (waiting[0] !== undefined && this.#hasSlot(waiting[0].kind))
                waiting[0].send();
        }
    }
}
