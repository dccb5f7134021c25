const LAST_DATE = 8.64e15;
export function handOffIn(value) {
    if (typeof value !== "object" || value === null)
        return undefined;
    const { uuid, tick = 0, heldUntil = 0, heldForMs = 0 } = value;
    const areNumbers = [tick, heldUntil, heldForMs].every((number) => Number.isSafeInteger(number) && Math.abs(number) <= LAST_DATE);
    return typeof uuid === "string" && areNumbers ? value : undefined;
}
