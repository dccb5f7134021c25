import { CHANNELS, publish } from "../diagnostics.js";
export class SectionEvents {
    #session;
    #lease;
    #section;
    #isPassedOn;
    beganAt = 0;
    #endedAt = 0;
    #stage = "new";
    #call = 0;
    #isWantedTold = false;
    #cancelWantedAlarm = () => undefined;
    constructor(session, lease, section) {
        this.#session = session;
        this.#lease = lease;
        this.#section = section;
        this.#isPassedOn = lease.renewals.haveServed;
    }
    delivered({ call, waitedMs }) {
        this.#stage = "delivered";
        this.#call = call;
        if (CHANNELS["dynamutex:acquired"].hasSubscribers) {
            const { name, uuid, owner } = this.#section;
            const passedOn = this.#isPassedOn;
            const takeover = passedOn ? undefined : this.#lease.row.takeover;
            publish("dynamutex:acquired", { name, uuid, owner, call, waitedMs, passedOn, takeover });
        }
        this.renewed();
    }
    renewed() {
        this.stopWatching();
        const { turnLeftMs } = this.#lease;
        if (this.#isWantedTold || !this.#section.held || turnLeftMs === Number.POSITIVE_INFINITY)
            return;
        if (turnLeftMs > 0) {
            this.#cancelWantedAlarm = this.#session.clock.alarm(Math.ceil(turnLeftMs), () => this.renewed());
            return;
        }
        this.#isWantedTold = true;
        const { name, uuid, owner } = this.#section;
        publish("dynamutex:wanted", { name, uuid, owner, call: this.#call });
    }
    stopWatching() {
        this.#cancelWantedAlarm();
    }
    lost({ reason, cause }) {
        if (this.#stage !== "delivered")
            return;
        this.#stage = "lost";
        const { name, uuid } = this.#section;
        publish("dynamutex:lost", { name, uuid, call: this.#call, reason, cause });
    }
    ended() {
        this.#endedAt = this.#session.clock.atLeast();
        this.stopWatching();
    }
    tellEnd() {
        if (this.#stage === "new" || this.#stage === "over")
            return;
        this.#stage = "over";
        if (!CHANNELS["dynamutex:released"].hasSubscribers)
            return;
        const { name, uuid } = this.#section;
        publish("dynamutex:released", { name, uuid, call: this.#call, heldMs: this.#endedAt - this.beganAt });
    }
}
