import { rowsOf } from "../session/session.js";
import { lossOf } from "../taking/row-lease.js";
const nothing = () => undefined;
export class Term {
    settings;
    row;
    lastFailure;
    session;
    events;
    sections = new Set();
    #state = { kind: "idle" };
    #writing;
    #cancelRenewal = nothing;
    constructor(session, row, events) {
        this.settings = row.settings;
        this.session = session;
        this.events = events;
        this.row = row;
    }
    get lost() {
        const state = this.#state;
        if (state.kind === "over")
            return state.error;
        if (state.kind === "in-use" && this.session.clock.atMost() >= this.deadline) {
            return this.markLost(this.usableUntil >= state.maxHoldEnds ? "max-hold" : "expired", this.lastFailure);
        }
        return undefined;
    }
    get held() {
        return this.#state.kind === "in-use" && this.lost === undefined;
    }
    get remainingMs() {
        return this.held ? Math.max(0, this.deadline - this.session.clock.atMost()) : 0;
    }
    get usableUntil() {
        return this.row.validUntil - this.settings.safetyMarginMs;
    }
    get deadline() {
        return this.#state.kind === "in-use" ? Math.min(this.usableUntil, this.#state.maxHoldEnds) : this.usableUntil;
    }
    get stands() {
        return this.#state.kind !== "over" && this.session.clock.atMost() < this.usableUntil;
    }
    get hasRunOut() {
        return this.#state.kind !== "in-use" && this.session.clock.atMost() >= this.usableUntil;
    }
    get inUseSince() {
        return this.#state.kind === "in-use" ? this.#state.since : undefined;
    }
    get isIdle() {
        return this.#state.kind === "idle";
    }
    get isOver() {
        return this.#state.kind === "over";
    }
    get turnLeftMs() {
        const { contention } = this.session;
        if (contention === undefined)
            return Number.POSITIVE_INFINITY;
        return Math.min(...rowsOf(this.row).map(({ at }) => contention.turnLeftMs(at, this.settings.handOverMs)));
    }
    use(section) {
        this.sections.add(section);
        if (this.#state.kind === "in-use")
            return false;
        const since = this.session.clock.atLeast();
        this.#state = { kind: "in-use", since, maxHoldEnds: Number.POSITIVE_INFINITY, cancelDeadline: nothing };
        this.#watchDeadline();
        return true;
    }
    countHold({ joins }) {
        const { clock } = this.session;
        const since = clock.atLeast();
        if (this.#state.kind !== "in-use")
            return since;
        this.#state.since = since;
        if (!joins)
            this.#state.maxHoldEnds = clock.atMost() + this.settings.maxHoldMs;
        this.#watchDeadline();
        return since;
    }
    endSection(section) {
        this.sections.delete(section);
        if (this.sections.size > 0)
            return false;
        if (this.#state.kind === "in-use")
            this.#become({ kind: "idle" });
        return true;
    }
    markLost(reason, cause) {
        const { kind } = this.#state;
        if (this.#state.kind === "over" && this.#state.error !== undefined)
            return this.#state.error;
        const error = lossOf(this.row, reason, cause);
        this.#become({ kind: "over", error });
        this.#writing?.end.abort();
        this.onLost(error, kind === "in-use");
        return error;
    }
    leave() {
        this.#become({ kind: "over", error: this.lost });
    }
    renewIn(ms, renew, gridMs) {
        this.#cancelRenewal();
        this.#cancelRenewal = this.session.agenda.alarm(ms, renew, gridMs);
    }
    stopRenewing() {
        this.#cancelRenewal();
    }
    get writing() {
        return this.#writing;
    }
    async endWriting() {
        if (this.#writing === undefined)
            return;
        const { done, end, cut } = this.#writing;
        end.abort();
        const cancel = this.session.clock.alarm(this.settings.releaseWithinMs / 2, () => cut.abort());
        await done.finally(cancel);
    }
    async write(send, { until = () => this.deadline, hasData = false } = {}) {
        const [end, cut] = [new AbortController(), new AbortController()];
        const { row, usableUntil } = this;
        const onFailure = (cause) => {
            this.lastFailure = cause;
            this.events.renewalFailed(this.row, cause);
        };
        const trying = { until, endSignal: end.signal, cutSignal: cut.signal, onFailure };
        const done = this.#judged(send(row, trying), usableUntil).finally(() => {
            this.#writing = undefined;
        });
        this.#writing = { done, end, cut, hasData };
        return await done;
    }
    async #judged(sent, usableUntil) {
        const written = await sent;
        this.row = written.lease;
        if (written.kind === "ok")
            this.lastFailure = undefined;
        const isLate = this.session.clock.atMost() >= usableUntil;
        if (isLate && this.#state.kind === "in-use")
            this.markLost("expired", this.lastFailure);
        const { lost } = this;
        if (lost !== undefined)
            return { kind: "lost", why: lost.reason };
        switch (written.kind) {
            case "ok":
                if (isLate)
                    return { kind: "unknown", cause: lossOf(this.row, "expired") };
                this.events.renewed(this.row, this.deadline - this.session.clock.atMost());
                if (this.turnLeftMs < Number.POSITIVE_INFINITY)
                    for (const section of this.sections)
                        section.renewed?.();
                return written;
            case "lost":
                return { kind: "lost", why: this.hasRunOut ? "expired" : this.markLost(written.why).reason };
            case "unknown":
                return written;
            default:
                return written;
        }
    }
    #watchDeadline() {
        const state = this.#state;
        if (state.kind !== "in-use")
            return;
        state.cancelDeadline();
        const ms = Math.max(0, this.deadline - this.session.clock.atMost());
        state.cancelDeadline = this.session.agenda.alarm(Math.ceil(ms), () => {
            if (this.held)
                this.#watchDeadline();
        });
    }
    #become(state) {
        if (this.#state.kind === "in-use")
            this.#state.cancelDeadline();
        this.#cancelRenewal();
        this.#state = state;
    }
}
