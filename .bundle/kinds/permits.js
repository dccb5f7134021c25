import { publish } from "../diagnostics.js";
import { permitAt, permitOf } from "../protocol/addresses.js";
import { looksFree } from "../taking/claim.js";
import { newest } from "./kind.js";
export const numbersTo = (end) => Array.from({ length: end }, (_, index) => index);
export function permitTarget({ name, settings, permits }, permit) {
    return { at: permitAt(name, permit), settings, permits };
}
export function ownRows(session, { name, permits }, rows) {
    const other = rows.find((row) => row.permits !== undefined && row.permits !== permits);
    if (other?.permits !== undefined && session.isNews(`${permits}/${other.permits}/${name}`))
        publish("dynamutex:permits-differ", { name, permits, others: other.permits, owner: other.owner });
    return rows.filter(({ sort }) => (permitOf(sort) ?? permits) < permits);
}
export function freePermits(seeing, { settings, permits }, rows) {
    const taken = new Set(heldAmong(seeing, settings, rows).map(({ sort }) => permitOf(sort)));
    return numbersTo(permits).filter((permit) => !taken.has(permit));
}
export function heldOf(seeing, resource, rows) {
    const inOrder = heldAmong(seeing, resource.settings, rows).toSorted((one, other) => other.acquired - one.acquired);
    return inOrder.map((row) => inTheWayAt(resource, row));
}
export function newestOf(resource, rows) {
    const row = newest(rows);
    return row && inTheWayAt(resource, row);
}
function heldAmong(seeing, settings, rows) {
    return rows.filter((row) => !looksFree(seeing, { at: row, settings }, row));
}
function inTheWayAt(resource, row) {
    return { target: permitTarget(resource, permitOf(row.sort) ?? 0), row };
}
