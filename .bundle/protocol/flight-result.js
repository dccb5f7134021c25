export function flightResultIn(value) {
    const { id, made } = Object(value);
    return typeof id === "string" ? { id, made: Number(made) } : undefined;
}
export function countingResult(lock, value) {
    return lock?.result !== undefined && lock.result.id === value?.uuid ? lock.result : undefined;
}
export function overBy(lock, value) {
    return new Set([lock?.result?.id, value?.uuid].flatMap((id) => id ?? []));
}
