import { newest, resourceKey } from "../kinds/kind.js";
import { awaitShared } from "../session/abort-listening.js";
import { BoundedMap } from "../session/bounded-map.js";
import { firstTimeoutMs, sendOnce } from "../session/requests.js";
import { isTransient, LONGEST_PAUSE_MS } from "../session/retry.js";
import { endedBy, looksFree, tryClaim } from "../taking/claim.js";
import { tickNow } from "../taking/known-time.js";
import { leaseWasOver } from "../taking/too-slow.js";
import { blockedFromNow, mark, untilFree } from "../taking/watch.js";
import { FairLine } from "./fair-line.js";
import { NOBODY_WAITS } from "./line.js";
import { Pace } from "./pace.js";
const LOOK_LASTS_MS = 3_000;
const GATHER_MS = 50;
const MOST_LOOKS = 5;
const SEEN_LASTS_MS = 1_000;
const MOST_PACES = 1_000;
export class FairQueue {
    #session;
    #turns;
    #paces = new BoundedMap(MOST_PACES);
    constructor(session, turns) {
        this.#session = session;
        this.#turns = turns;
    }
    newLine(resource) {
        const key = resourceKey(resource);
        const pace = this.#paces.get(key) ?? new Pace(this.#session);
        this.#paces.set(key, pace);
        return new FairLine(this.#session, this.#turns, resource, { queue: this, pace });
    }
    async acquire(line, wait) {
        await this.#turns.standBack(wait.asker.request.resource, wait);
        if (line.seen !== undefined && line.capacity === 1)
            line.seen = { ...line.seen, gate: [] };
        let mayBeFree = !line.admission.othersWait;
        for (;;) {
            wait.endSignal.throwIfAborted();
            const own = line.places.first;
            if (own !== undefined) {
                const lease = await this.#enter(line, own, wait);
                if (lease !== undefined)
                    return lease;
                if (own.wasTooShort)
                    leaseWasOver(wait, wait.asker.request.resource);
                await wait.again();
                continue;
            }
            const result = mayBeFree ? await this.#takeWithoutPlace(line, wait, line.knownLook) : undefined;
            mayBeFree = false;
            if (result?.kind === "granted")
                return result.granted;
            wait.endSignal.throwIfAborted();
            if (line.admission.upTo > 0)
                await this.#session.clock.sleep(0, wait.endSignal);
            try {
                await awaitShared(wait.endSignal, wait.call.inContext(() => line.draw()));
                this.drawForUnserved(line);
            }
            catch (error) {
                this.#waitOut(wait, error);
                await wait.again();
            }
        }
    }
    async tryAcquire(line, wait) {
        for (;;) {
            const result = await this.#takeWithoutPlace(line, wait);
            if (result !== undefined)
                return result;
            wait.endSignal.throwIfAborted();
            await wait.again();
        }
    }
    async mayPass(line, own) {
        const isRecent = this.#session.clock.atMost() - line.lookedAt < own.lease.settings.handOverMs;
        if (line.admitsFirst ? isRecent : line.admission.othersWait)
            return line.admitsFirst;
        await this.#lookAgain(line, own);
        return line.admitsFirst;
    }
    drawForUnserved(line) {
        if (line.isDrawingForUnserved || line.unserved === undefined)
            return;
        line.isDrawingForUnserved = true;
        this.#session.detach(this.#drawWhileUnserved(line));
    }
    async #drawWhileUnserved(line) {
        try {
            for (let { unserved } = line; unserved !== undefined; { unserved } = line) {
                const [own] = line.leases;
                if (line.hasAgent || own === undefined) {
                    if (line.places.first === undefined && !line.awaitsHolders)
                        return;
                    await this.#drawFor(line);
                    continue;
                }
                const gatherMs = GATHER_MS - unserved.call.waitedMs;
                if (gatherMs > 0) {
                    await this.#session.clock.sleep(Math.ceil(gatherMs), this.#session.closing);
                    continue;
                }
                if (!line.admission.othersWait)
                    await this.#lookAgain(line, own);
                if (line.unserved === unserved && line.leases.has(own))
                    await this.#drawFor(line);
            }
        }
        finally {
            line.isDrawingForUnserved = false;
            line.tidy();
        }
    }
    async #drawFor(line) {
        try {
            await line.draw();
        }
        catch (error) {
            if (error === NOBODY_WAITS || line.unserved === undefined)
                return;
            if (!isTransient(error))
                throw error;
            await this.#session.clock.sleep(LONGEST_PAUSE_MS, this.#session.closing);
        }
    }
    async #lookAgain(line, own) {
        const { settings } = own.resource;
        const { at, uuid } = own.lease.row;
        const asked = { kind: "read", firstTimeoutMs: firstTimeoutMs(settings.ttlMs) };
        const { sightings } = this.#session;
        const ask = (request) => sendOnce(this.#session, asked, request);
        const look = await line.look({ ask, sightings }, own.resource, { isConsistent: true }).catch(() => undefined);
        if (look === undefined || !line.leases.has(own))
            return;
        const { admission } = look;
        const row = look.gate.find(({ sort }) => sort === at.sort);
        if (row?.uuid !== uuid) {
            own.admitsNobody = true;
            return;
        }
        line.admission = { ...admission, upTo: Math.max(line.admission.upTo, admission.upTo) };
        if (admission.othersWait || row.wanted === undefined)
            return;
        const contention = this.#session.contended();
        contention.sees(row);
        if (!contention.isTurnOver(at, settings.handOverMs))
            return;
        line.admission = { upTo: 0, othersWait: false };
        contention.giveTurn(at, settings.poll.maxMs);
    }
    async #takeWithoutPlace(line, wait, known) {
        const { asker } = wait;
        const { resource, once } = asker.request;
        let look = known ?? (await line.look(wait, resource, { isConsistent: true }));
        for (let looks = 1; !look.isConsistent && looks < MOST_LOOKS; looks += 1) {
            await wait.again();
            look = await line.look(wait, resource, { isConsistent: true });
        }
        const { gate, admission, sentAt } = look;
        wait.endSignal.throwIfAborted();
        if (wait.asker !== asker)
            return undefined;
        const row = newest(gate);
        if (row !== undefined)
            wait.saw(row);
        line.admission = admission;
        if (admission.othersWait) {
            const tick = once && (await tickNow(this.#session, resource.at, once, wait));
            return { kind: (row && endedBy(row, tick, once)) ?? "held" };
        }
        if (once === undefined && resource.kind.queue.room(wait, resource, gate) < resource.weight)
            return { kind: "held" };
        const until = () => Math.min(sentAt + LOOK_LASTS_MS, wait.until());
        return await this.#claim(line, wait, { until, seen: gate, ahead: 0 });
    }
    async #enter(line, place, wait) {
        const session = this.#session;
        const { seen } = line;
        const isRecent = seen !== undefined && session.clock.atMost() - seen.sentAt < SEEN_LASTS_MS;
        let recent = isRecent ? { ...seen, isConsistent: false } : undefined;
        for (let isConsistent = false; line.places.first === place;) {
            wait.endSignal.throwIfAborted();
            const look = recent ?? (await line.look(wait, wait.asker.request.resource, { isConsistent }));
            [recent, isConsistent] = [undefined, false];
            wait.endSignal.throwIfAborted();
            if (line.places.first !== place)
                return undefined;
            const { gate } = look;
            const { resource } = wait.asker.request;
            if (endsAsInsatiable(wait, gate))
                continue;
            const room = resource.kind.queue.room(wait, resource, gate);
            const ahead = line.ahead(look, place.ticket);
            if (ahead > 0 && ahead + resource.weight - 1 >= room) {
                const row = newest(gate);
                if (row !== undefined)
                    wait.saw(row);
                line.blocked = undefined;
                await wait.pause(Math.max(1, line.pause(wait, look, place.ticket, ahead)));
                continue;
            }
            if (look.isConsistent && !look.places.some(({ uuid }) => uuid === place.uuid)) {
                if (line.reaches(look, place))
                    place.lose();
                else
                    await wait.again();
                continue;
            }
            if (room < resource.weight) {
                const ms = line.pace.next(resource.settings.poll);
                await this.#markWhenBlocked(line, wait, gate);
                const free = gate.map((row) => untilFree(session, wait, { ...resource, at: row }, row));
                await wait.pause(Math.max(1, Math.min(ms, ...free)));
                isConsistent = ms < resource.settings.poll.maxMs / 2;
                continue;
            }
            if (!look.isConsistent) {
                isConsistent = true;
                continue;
            }
            line.admission = look.admission;
            const until = () => Math.min(look.sentAt + LOOK_LASTS_MS, place.until(), wait.until());
            const result = await this.#claim(line, wait, { until, seen: gate, ahead });
            if (result?.kind === "granted")
                return result.granted;
            await wait.again();
        }
        return undefined;
    }
    async #markWhenBlocked(line, wait, gate) {
        const { resource } = wait.asker.request;
        const session = this.#session;
        for (const row of gate)
            session.contended().waitsFor(row);
        const row = newest(gate);
        if (row === undefined)
            return;
        wait.saw(row);
        line.blocked ??= blockedFromNow(session);
        await mark(session, { ...resource, at: row }, { row, blocked: line.blocked, wait });
    }
    async #claim(line, wait, how) {
        const { asker } = wait;
        const { once } = asker.request;
        const onTaken = () => {
            line.awaitsHolders = true;
            this.drawForUnserved(line);
        };
        try {
            const result = await tryClaim(wait, () => line.claim(wait, { ...how, onTaken }));
            const hasJoined = result.kind === "granted" && line.leases.has(result.granted);
            return hasJoined && wait.asker !== asker ? undefined : result;
        }
        catch (error) {
            this.#waitOut(wait, error);
            if (once !== undefined)
                throw error;
            return undefined;
        }
        finally {
            line.awaitsHolders = false;
        }
    }
    #waitOut(wait, error) {
        wait.endSignal.throwIfAborted();
        if (!isTransient(error) || this.#session.clock.atMost() >= wait.until())
            throw error;
    }
}
function endsAsInsatiable(agent, gate) {
    const { call, request } = agent.asker;
    const { weight, settings } = request.resource;
    const other = gate.find((row) => (row.permits ?? weight) < weight && !looksFree(agent, { at: row, settings }, row));
    if (other === undefined)
        return false;
    call.missed("timeout");
    const because = `Another host, ${other.owner}, has ${other.permits} permits for it, and this call needs ${weight}: hosts that wait behind it ` +
        "would do so for ever. Deploy one number everywhere (dynamutex:permits-differ)";
    call.fail(call.timeout(because));
    return true;
}
