import { HeldLock } from "../holding/handle.js";
import { ExclusiveSide } from "../kinds/exclusive.js";
import { resourceKey } from "../kinds/kind.js";
import { MutexKind } from "../kinds/mutex.js";
import { SemaphoreKind } from "../kinds/semaphore.js";
import { SharedSide } from "../kinds/shared.js";
import { displayTime } from "../protocol/lease-time.js";
import { guardOf, uuidsOf } from "../taking/row-lease.js";
import { leaseWasOver, tooSlow } from "../taking/too-slow.js";
import { boundsOf } from "../time/clock.js";
import { FairQueue } from "./fair-queue.js";
import { fits } from "./fits.js";
import { Line } from "./line.js";
import { Turns } from "./turns.js";
const MOST_KEPT = 16;
export class Sections {
    session;
    kinds;
    #lines = new Map();
    #fairQueue;
    #turns;
    constructor(session) {
        this.session = session;
        this.kinds = {
            mutex: new MutexKind(session),
            semaphore: new SemaphoreKind(session),
            exclusive: new ExclusiveSide(session),
            shared: new SharedSide(session),
        };
        this.#turns = new Turns(session);
        this.#fairQueue = new FairQueue(session, this.#turns);
    }
    add(waiter) {
        const { call, request } = waiter;
        const { kind, settings } = request.resource;
        const line = this.#line(request.resource);
        const isBehind = !line.isEmpty;
        const standing = line.add(waiter);
        call.holderNow = () => standing.agent?.seen ?? line.holder;
        call.atEnd((failure) => {
            line.leave(standing, failure);
            this.#tidy(line);
        });
        if (isBehind)
            call.isBlocked();
        this.#pump(line, { together: !kind.sectionsShareLease && !settings.fair && !line.isOthersTurn });
        if (standing.agent === undefined)
            call.stay();
        line.changed();
    }
    async try(agent) {
        const { call, request } = agent.asker;
        const { resource, once } = request;
        const line = this.#line(resource);
        try {
            if (once === undefined && line.isOthersTurn)
                return "held";
            if (line.isAheadOfTries && (resource.settings.fair || !resource.kind.sectionsShareLease)) {
                const { asking } = line;
                call.holderNow = () => agent.seen ?? (this.#lines.get(lineKeyOf(resource)) ?? line).holder ?? asking?.seen;
                if (call.bounds.namesHolder && call.holder === undefined)
                    await agent.answered(line.answered());
                return "held";
            }
            line.enter(agent);
            return await line.asks(agent, this.#try(line, agent));
        }
        finally {
            this.#dismiss(line, agent);
        }
    }
    async #try(line, agent) {
        const { resource, once } = agent.asker.request;
        for (;;) {
            const result = await line.tryAcquire(agent);
            if (result.kind !== "granted")
                return result.kind;
            if (await this.#handOut(line, result.granted, agent))
                return undefined;
            const isTooLate = once !== undefined || this.session.clock.atMost() >= agent.until();
            if (isTooLate)
                throw tooSlow(resource.name, resource.settings);
        }
    }
    #pump(line, { together } = { together: false }) {
        while (line.needsAgent(together))
            this.session.detach(this.#ask(line, line.newAgent(together)));
    }
    async #ask(line, agent) {
        for (let isDone = false; !isDone && !agent.endSignal.aborted;) {
            const { asker } = agent;
            try {
                isDone = await asker.call.inContext(() => this.#acquire(line, agent));
            }
            catch (error) {
                if (!agent.endSignal.aborted && agent.asker === asker)
                    asker.call.fail(error);
            }
        }
        this.#dismiss(line, agent);
    }
    async #acquire(line, agent) {
        const own = await line.acquire(agent);
        if (own !== undefined)
            return await this.#handOut(line, own, agent);
        agent.call.stay();
        return true;
    }
    #dismiss(line, agent) {
        line.dismiss(agent);
        this.#pump(line);
        this.#tidy(line);
    }
    async #handOut(line, own, agent) {
        const { lease, resource } = own;
        if (lease.renewals.haveServed)
            return this.#join(line, own, agent);
        const isSecure = await lease.renewals.secure(agent, { mayLapse: resource.kind.rowDecides });
        if (isSecure) {
            line.keep(own);
            lease.keep(() => this.#retire(own, false));
            const { asker } = agent;
            line.dismiss(agent);
            const hasBegun = asker.request === own.request && this.#begin(own, asker, lease.row.acquired, lease.row.tick);
            if (hasBegun)
                this.#advance(line, own);
            else
                this.session.detach(this.#end(own));
            asker.call.stay();
            return true;
        }
        this.session.detach(this.#end(own));
        agent.endSignal.throwIfAborted();
        for (const uuid of uuidsOf(lease.row))
            agent.sightings.abandon(uuid, lease.row.attempt);
        if (guardOf(lease.row) === undefined)
            leaseWasOver(agent, resource);
        await agent.again();
        return false;
    }
    #join(line, own, agent) {
        agent.endSignal.throwIfAborted();
        const { asker } = agent;
        if (!line.leases.has(own) || !fits(own, asker.request))
            return false;
        line.dismiss(agent);
        this.#begin(own, asker, this.#now);
        this.#advance(line, own);
        return true;
    }
    get #now() {
        return displayTime(boundsOf(this.session.clock));
    }
    #begin(own, waiter, acquired, tick) {
        const { call, request, settle } = waiter;
        if (call.isSettled)
            return false;
        const { session } = this;
        const { lease, resource } = own;
        const end = (_ended, section) => this.#end(own, section);
        const mayHandOff = resource.kind.rowDecides && own.request.flight === undefined;
        const lock = call.inContext(() => {
            const held = new HeldLock({ session, lease, acquired, tick, end, mayHandOff });
            settle(held);
            return held;
        });
        if (request.holdAtLeastMs > 0)
            lease.exit.holdAtLeast(request.holdAtLeastMs);
        own.before?.tellEnd();
        own.before = undefined;
        call.inContext(() => lock.delivered({ call: call.number, waitedMs: call.waitedMs }));
        return true;
    }
    #canPass({ leases, waiters: [first] }, own) {
        return first !== undefined && leases.has(own) && fits(own, first.request);
    }
    #pass(line, own) {
        if (!this.#beginNext(line, own))
            return false;
        this.#advance(line, own);
        return true;
    }
    #advance(line, own) {
        while (own.resource.kind.sectionsShareLease && this.#beginNext(line, own))
            ;
        this.#pump(line);
        line.changed();
    }
    #beginNext(line, own) {
        const [first] = line.waiters;
        return this.#canPass(line, own) && line.admitsFirst && this.#begin(own, first, this.#now);
    }
    async #end(own, section) {
        const { lease } = own;
        const { stands } = lease;
        if (section !== undefined && !lease.endSection(section)) {
            if (lease.lost !== undefined)
                throw lease.lost;
            return;
        }
        const line = this.#line(own.resource);
        const isShared = own.resource.kind.sectionsShareLease;
        if (isShared && section === undefined && this.#pass(line, own))
            return;
        if (!isShared && (await this.#passOn(line, own, section)))
            return;
        let isFree = false;
        try {
            await (section === undefined ? lease.exit.giveBack() : lease.exit.release());
            isFree = stands && lease.exit.hold === undefined;
        }
        finally {
            if (stands && (own.admitsNobody || this.session.contention !== undefined))
                this.#turns.end(own);
            this.#retire(own, isFree);
        }
    }
    async #passOn(line, own, section) {
        if (!this.#canPass(line, own))
            return false;
        const mayPass = section === undefined ? !this.#turns.isOver(own) : await line.mayPass(own);
        if (!mayPass || own.admitsNobody)
            return false;
        if (!(await own.lease.renewals.renewForNext()))
            return false;
        if (section instanceof HeldLock)
            own.before = section;
        return this.#pass(line, own);
    }
    #retire(own, isFree) {
        own.resource.kind.ended(own, isFree);
        const line = this.#line(own.resource);
        line.leases.delete(own);
        this.#pump(line);
        this.#tidy(line);
    }
    #line(resource) {
        const { permits, settings } = resource;
        const key = lineKeyOf(resource);
        let line = this.#lines.get(key);
        if (line === undefined) {
            line = settings.fair ? this.#fairQueue.newLine(resource) : new Line(this.session, this.#turns, resource);
            this.#lines.set(key, line);
        }
        line.capacity = Math.max(line.capacity, permits);
        return line;
    }
    #tidy(line) {
        if (!line.tidy() || (this.#lines.size <= MOST_KEPT && !line.resource.settings.fair))
            return;
        const key = lineKeyOf(line.resource);
        if (this.#lines.get(key) === line)
            this.#lines.delete(key);
    }
}
function lineKeyOf(resource) {
    const key = resourceKey(resource);
    return resource.settings.fair ? `fair/${key}` : resource.weight > 1 ? `${resource.weight}*/${key}` : key;
}
