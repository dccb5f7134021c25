import { once } from "node:events";
import { MessageChannel } from "node:worker_threads";
import { LockConfigError } from "../errors.js";
import { hostTime, MAX_TIMER_MS, sleepUntilRung, timers } from "../time/clock.js";
const nothing = () => undefined;
const awaited = (ms, ring) => {
    const stopped = new AbortController();
    timers.sleep(ms, stopped.signal).then(ring, nothing);
    return () => stopped.abort();
};
export class TableTime {
    clock;
    #isReal;
    #startedAt;
    #alarms = new Set();
    #elapsed = 0;
    #wall = hostTime.wall();
    constructor({ time, startAt }) {
        this.#isReal = time === "real";
        this.#startedAt = startAt?.getTime() ?? this.#wall;
        this.clock = {
            wall: () => ({ earliest: this.#now, latest: this.#now }),
            atLeast: () => this.#read(),
            atMost: () => this.#read(),
            alarm: (ms, ring) => this.#set(ms, ring, timers.alarm),
            sleep: (ms, signal) => sleepUntilRung((wake) => this.#set(ms, wake, awaited), signal),
            ...(this.#isReal && timers.stay && { stay: timers.stay }),
        };
    }
    get now() {
        return new Date(this.#now);
    }
    async advance(ms) {
        if (!Number.isFinite(ms) || ms < 0) {
            throw new LockConfigError("ms", ms, "must be a number of milliseconds, 0 or more");
        }
        await settled();
        const target = this.#read() + ms;
        for (let next = this.#next(target); next !== undefined; next = this.#next(target)) {
            next.stop();
            this.#ring(next);
            await settled();
        }
        this.#elapsed = Math.max(this.#read(), target);
        if (this.#isReal)
            for (const alarm of this.#alarms)
                this.#start(alarm);
    }
    get #now() {
        return this.#startedAt + this.#read();
    }
    #read() {
        if (!this.#isReal)
            return this.#elapsed;
        const wall = hostTime.wall();
        this.#elapsed += Math.max(0, wall - this.#wall);
        this.#wall = wall;
        return this.#elapsed;
    }
    #next(target) {
        const due = [...this.#alarms].filter(({ dueAt }) => dueAt <= target);
        return due.sort((one, other) => one.dueAt - other.dueAt)[0];
    }
    #ring(alarm) {
        if (!this.#alarms.delete(alarm))
            return;
        this.#elapsed = Math.max(this.#read(), alarm.dueAt);
        alarm.ring();
    }
    #set(ms, ring, timer) {
        const wholeMs = Math.min(Math.max(0, Math.ceil(ms)), MAX_TIMER_MS);
        const alarm = { dueAt: this.#read() + wholeMs, ring, timer, stop: nothing };
        this.#alarms.add(alarm);
        if (this.#isReal)
            this.#start(alarm);
        return () => {
            alarm.stop();
            this.#alarms.delete(alarm);
        };
    }
    #start(alarm) {
        alarm.stop();
        alarm.stop = alarm.timer(alarm.dueAt - this.#read(), () => this.#ring(alarm));
    }
}
async function settled() {
    const { port1, port2 } = new MessageChannel();
    port2.postMessage(undefined);
    await once(port1, "message");
    port1.close();
}
