const LAST_DATE = 8.64e15;
export function ranIn(value) {
    if (typeof value !== "object" || value === null)
        return undefined;
    const { tick, attempt = 0, owner, at } = value;
    const areWhole = [tick, attempt, at].every(Number.isSafeInteger);
    return areWhole && typeof owner === "string" && Math.abs(at) <= LAST_DATE ? value : undefined;
}
