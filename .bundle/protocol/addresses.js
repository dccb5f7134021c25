export const LOCK_SORT = "lock";
export const WRITER_SORT = "writer";
const RESULT_SORT = "flight";
const PERMIT_SORT = /^semaphore#(\d{4})$/;
const READER_PREFIX = "reader#";
const READER_SORT = /^reader#[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const TICKET_DIGITS = 38;
const LAST_TICKET = 10n ** BigInt(TICKET_DIGITS) - 1n;
const PLACE_SORT = /^(?:semaphore-|writer-)?queue#(\d{38})$/;
export const MUTEX_QUEUE = { prefix: "queue#", counter: "tickets" };
export const SEMAPHORE_QUEUE = { prefix: "semaphore-queue#", counter: "semaphore-tickets" };
export const SHARED_MUTEX_QUEUE = { prefix: "writer-queue#", counter: "writer-tickets" };
export const lockAt = (name) => ({ name, sort: LOCK_SORT });
export const resultAt = (name) => ({ name, sort: RESULT_SORT });
export const RESULT_AND_LOCK = { first: RESULT_SORT, last: LOCK_SORT };
export const permitAt = (name, permit) => ({ name, sort: permitSort(permit) });
export const writerAt = (name) => ({ name, sort: WRITER_SORT });
export const readerAt = (name, uuid) => ({ name, sort: READER_PREFIX + uuid });
const permitSort = (permit) => `semaphore#${String(permit).padStart(4, "0")}`;
export const PERMITS = { first: permitSort(0), last: permitSort(9_999) };
export const READERS = { first: READER_PREFIX, last: "reader$" };
export function permitOf(sort) {
    const digits = PERMIT_SORT.exec(sort)?.[1];
    return digits === undefined ? undefined : Number(digits);
}
export const placeAt = (name, ticket, queue = MUTEX_QUEUE) => ({
    name,
    sort: placeSort(ticket, queue),
});
export function placeSort(ticket, { prefix } = MUTEX_QUEUE) {
    const inRange = ticket < 0n ? 0n : ticket > LAST_TICKET ? LAST_TICKET : ticket;
    return prefix + inRange.toString().padStart(TICKET_DIGITS, "0");
}
export const placesOf = (queue) => ({
    first: placeSort(0n, queue),
    last: placeSort(LAST_TICKET, queue),
});
export function ticketOf(sort) {
    const digits = PLACE_SORT.exec(sort)?.[1];
    return digits === undefined ? undefined : BigInt(digits);
}
export function kindOf(sort) {
    if (sort === LOCK_SORT)
        return "lock";
    if (sort === WRITER_SORT)
        return "writer";
    if (sort === RESULT_SORT)
        return "result";
    if (PERMIT_SORT.test(sort))
        return "permit";
    if (READER_SORT.test(sort))
        return "reader";
    return PLACE_SORT.test(sort) ? "place" : undefined;
}
