const DRAIN_MS = 10_000;
const TOLD_AFTER_MS = 5_000;
export class Closing {
    #clock;
    #remaining;
    #onSettled;
    #drainEnds = Number.POSITIVE_INFINITY;
    #closed;
    #pause;
    #isSettled = false;
    #isDefault = true;
    constructor(clock, remaining, onSettled) {
        this.#clock = clock;
        this.#remaining = remaining;
        this.#onSettled = onSettled;
    }
    get remainingMs() {
        return this.#drainEnds + this.#remaining.longestReleaseMs() - this.#clock.atLeast();
    }
    close(drainMs) {
        const ms = drainMs ?? (this.#closed === undefined ? DRAIN_MS : Number.POSITIVE_INFINITY);
        this.#isDefault &&= drainMs === undefined;
        this.#drainEnds = Math.min(this.#drainEnds, this.#clock.atLeast() + ms);
        this.#pause?.abort();
        this.#closed ??= this.#close();
        return this.#closed;
    }
    checkSettled() {
        const { leases, background } = this.#remaining;
        if (this.#isSettled || leases.size + background() > 0)
            return;
        this.#isSettled = true;
        this.#pause?.abort();
        this.#onSettled();
    }
    async #close() {
        const { leases } = this.#remaining;
        for (const lease of [...leases])
            lease.endIfIdle();
        this.checkSettled();
        const drainLeftMs = () => this.#drainEnds - this.#clock.atLeast();
        if (this.#isDefault)
            await this.#pauseWhile(() => drainLeftMs() - (DRAIN_MS - TOLD_AFTER_MS));
        if (this.#isDefault)
            this.#tell();
        await this.#pauseWhile(drainLeftMs);
        const revoked = [...leases].flatMap((lease) => lease.revoke() ?? []);
        await this.#pauseWhile(() => this.remainingMs);
        if (revoked.length === 0)
            return;
        throw new AggregateError(revoked, message(revoked));
    }
    #tell() {
        const [first, ...others] = this.#remaining.leases;
        if (first === undefined || this.#clock.stay === undefined)
            return;
        process.emitWarning(`close() has waited for ${TOLD_AFTER_MS / 1_000} s for ${namesOf(first.row.at.name, others)} to be unlocked, and revokes ` +
            `what is left after ${DRAIN_MS / 1_000} s. ${REMEDY}`, "DynamutexWarning");
    }
    async #pauseWhile(leftMs) {
        while (!this.#isSettled && leftMs() > 0) {
            this.#pause = new AbortController();
            await this.#clock.sleep(Math.ceil(leftMs()), this.#pause.signal).catch(() => undefined);
        }
    }
}
const REMEDY = "Unlock every lock, end sections when lock.signal aborts, or set a longer drainMs";
function namesOf(first, others) {
    return `lock ${JSON.stringify(first)}${others.length === 0 ? "" : ` and ${others.length} more`}`;
}
function message([first, ...others]) {
    const names = namesOf(first?.lockName, others).replace(/^l/, "L");
    const were = others.length === 0 ? "was" : "were";
    return `${names} ${were} revoked: the section had not ended when the drain was over. ${REMEDY}`;
}
