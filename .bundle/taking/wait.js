import { infoOf } from "../protocol/row.js";
import { awaitShared } from "../session/abort-listening.js";
import { answeredWithin } from "../session/overdue.js";
import { persist, sendOnce } from "../session/requests.js";
import { LONGEST_ATTEMPT_MS, pauseMs } from "../session/retry.js";
import { isTimeKnown } from "../time/clock.js";
import { FIRST_ANSWER_MS } from "./call.js";
const AT_ONCE = 2;
export class Wait {
    asker;
    longestPauseMs = () => Number.POSITIVE_INFINITY;
    newSightings = () => this.#session.sightings.ofCall();
    #session;
    #end = new AbortController();
    endSignal = this.#end.signal;
    #tried;
    #sightings;
    #row;
    #times = 0;
    constructor(session, asker) {
        this.#session = session;
        this.asker = asker;
    }
    get call() {
        return this.asker.call;
    }
    get isPatient() {
        return this.call.isPatient;
    }
    get waitedMs() {
        return this.call.waitedMs;
    }
    get remainingMs() {
        return this.call.remainingMs;
    }
    until = () => this.call.until();
    get sightings() {
        this.#sightings ??= this.newSightings();
        return this.#sightings;
    }
    get seen() {
        return this.#row && infoOf(this.#row);
    }
    end(reason) {
        this.#end.abort(reason);
    }
    saw(row) {
        if (!this.sightings.isAbandoned(row))
            this.#row = row;
        this.call.isBlocked();
        this.call.onSeen?.(row);
    }
    async again() {
        this.#times += 1;
        if (this.#times > AT_ONCE)
            await this.#sleep(pauseMs(this.#session, this.#times - AT_ONCE));
    }
    async pause(ms) {
        await this.#sleep(ms);
        this.#times = 0;
    }
    #sleep(ms) {
        const { clock } = this.#session;
        return clock.sleep(Math.max(0, Math.min(ms, this.until() - clock.atMost())), this.endSignal);
    }
    async persist(bounds, request, skipWith) {
        const { clock } = this.#session;
        this.#tried ??= { since: clock.atLeast(), sent: 0 };
        const persistence = {
            ...bounds,
            tried: this.#tried,
            deadline: clock.atMost() + FIRST_ANSWER_MS,
            endSignal: this.endSignal,
            onFailure: (cause) => this.call.requestFailed(cause),
        };
        const answer = await this.call.inContext(() => persist(this.#session, persistence, request, skipWith));
        this.#tried = undefined;
        return answer;
    }
    answered(shared) {
        const { clock } = this.#session;
        return awaitShared(this.endSignal, answeredWithin(clock, this.until() - clock.atMost(), shared));
    }
    ask = (question, skipWith) => this.persist({ kind: "read", firstTimeoutMs: LONGEST_ATTEMPT_MS, until: this.until }, question, skipWith);
    once(bounds, request) {
        return this.call.inContext(() => sendOnce(this.#session, { ...bounds, endSignal: this.endSignal }, request));
    }
    persistAtKnownTime(bounds, write) {
        let mayLeave = false;
        const learnFirst = () => {
            mayLeave ||= isTimeKnown(this.#session.clock);
            return mayLeave ? undefined : Promise.resolve(undefined);
        };
        return this.persist(bounds, write, learnFirst);
    }
}
export function askFor(session, asker, work) {
    const { call } = asker;
    const wait = new Wait(session, asker);
    const { holderNow } = call;
    call.holderNow = () => wait.seen ?? holderNow?.();
    call.atEnd((failure) => {
        if (failure !== undefined)
            wait.end(failure.reason);
    });
    session.detach(work(wait).catch((error) => call.fail(error)));
}
export function runFor(session, call, work) {
    return call.begin(() => askFor(session, { call }, work));
}
