import { rowsOf } from "../session/session.js";
import { infoOfLease, reasonOf } from "../taking/row-lease.js";
import { Exit } from "./exit.js";
import { LOCK_EVENTS, Renewals } from "./renewals.js";
import { Term } from "./term.js";
export class Lease extends Term {
    takenAt;
    renewals;
    #exit;
    #tellLoss = () => undefined;
    constructor(session, row, events = LOCK_EVENTS) {
        super(session, row, events);
        this.takenAt = session.clock.atLeast();
        this.renewals = new Renewals(session, this);
    }
    get exit() {
        this.#exit ??= new Exit(this.session, this);
        return this.#exit;
    }
    get info() {
        return infoOfLease(this.session, this.row);
    }
    keep(tellLoss = () => undefined) {
        this.#tellLoss = tellLoss;
        this.session.keepLease(this);
    }
    begin(section) {
        const joins = this.renewals.haveServed && this.sections.size > 0;
        if (!this.renewals.haveServed)
            for (const { at } of rowsOf(this.row))
                this.session.contention?.begins(at, this.takenAt);
        this.watch(section, this.renewals.spread());
        this.renewals.serve();
        return this.countHold({ joins });
    }
    watch(section, share = 1) {
        if (this.use(section))
            this.renewals.start(share);
    }
    unguarded(row) {
        return this.lost ?? this.markLost(reasonOf(this.session, this.row, row));
    }
    lose(reason) {
        if (!this.isOver)
            this.markLost(reason);
    }
    endIfIdle() {
        if (this.isIdle)
            void this.exit.release();
    }
    revoke() {
        if (!this.held)
            return undefined;
        if (this.events.hasSection && this.renewals.haveServed)
            return this.markLost("closed");
        void this.exit.release();
        return undefined;
    }
    onLost(error, wasInUse) {
        if (wasInUse && error.reason !== "closed")
            this.session.forgetLease(this);
        if (wasInUse)
            for (const section of this.sections)
                section.abort(error);
        this.#tellLoss();
    }
}
