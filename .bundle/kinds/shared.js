import { readerAt } from "../protocol/addresses.js";
import { looksFreeIn } from "../taking/claim.js";
import { isHalfGone } from "../taking/row-lease.js";
import { Kind, rowTarget, takeRow } from "./kind.js";
import { grantedUnless, lookForWriter, untilNoWriter, WRITER_GATE } from "./shared-mutex-rows.js";
export class SharedSide extends Kind {
    id = "shared";
    rowDecides = false;
    sectionsShareLease = true;
    queue = {
        ...WRITER_GATE,
        side: "shared",
        room: (seeing, resource, rows) => (looksFreeIn(seeing, rowTarget(resource), rows) ? Number.POSITIVE_INFINITY : 0),
        weight: ({ data }) => (data?.side === "shared" ? 0 : Number.POSITIVE_INFINITY),
    };
    async claim(claimed) {
        const { session } = this;
        const { request, wait, seen, open } = claimed;
        const { resource } = request;
        const joined = open();
        if (joined !== undefined) {
            if (seen !== undefined)
                joined.lookedAt = session.clock.atLeast();
            const writer = await this.#writerBehind(joined, wait);
            if (writer !== undefined)
                return { kind: "held", inTheWay: [writer] };
            const { lease } = joined;
            if (isHalfGone(session, lease.row) && lease.stands)
                await wait.answered(lease.renewals.renew());
            if (lease.stands && !isHalfGone(session, lease.row) && !joined.admitsNobody)
                return { kind: "granted", granted: joined };
        }
        const { name, at, settings } = resource;
        if (!wait.sightings.mayBeFree(at, settings.takeover)) {
            const writer = await lookForWriter(session, resource, wait);
            if (writer !== undefined)
                return { kind: "held", inTheWay: [writer] };
            wait.endSignal.throwIfAborted();
        }
        for (;;) {
            const result = await takeRow(session, claimed, { at: readerAt(name, session.uuid()), settings });
            if (result.kind === "granted")
                return await grantedUnless(session, result.granted, () => untilNoWriter(session, resource, wait));
            if (result.kind !== "held")
                return result;
            await wait.again();
        }
    }
    async #writerBehind(own, wait) {
        const now = this.session.clock.atLeast();
        if (now - own.lookedAt < own.resource.settings.handOverMs)
            return undefined;
        const writer = await lookForWriter(this.session, own.resource, wait);
        if (writer === undefined)
            own.lookedAt = now;
        else
            own.admitsNobody = true;
        return writer;
    }
}
