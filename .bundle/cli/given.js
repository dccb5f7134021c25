const sources = new Map();
export function giveToSdk(variable, source, value) {
    if (value === undefined)
        return;
    process.env[variable] = value;
    sources.set(variable, source);
}
export const sourceOf = (variable) => sources.get(variable) ?? variable;
export function asGiven(text) {
    return text.replace(/\bAWS_[A-Z_]+(?= is |, which is )/g, sourceOf);
}
