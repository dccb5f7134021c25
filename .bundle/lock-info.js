export function copyOf(value) {
    if (typeof value === "number")
        return value + 0;
    if (typeof value !== "object" || value === null)
        return value;
    if (value instanceof Uint8Array)
        return new Uint8Array(value);
    if (value instanceof Set)
        return new Set([...value].map(copyOf));
    if (Array.isArray(value))
        return Array.from(value, copyOf);
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, copyOf(member)]));
}
