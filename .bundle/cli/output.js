import { write, writeSync } from "node:fs";
import { asGiven } from "./given.js";
export function complain(line) {
    let rest = lineOf(line);
    while (rest.length > 0) {
        try {
            rest = rest.subarray(writeSync(2, rest));
        }
        catch (error) {
            if (error.code !== "EAGAIN")
                return;
        }
    }
}
export function mention(line) {
    write(2, lineOf(line), () => undefined);
}
function lineOf(line) {
    return Buffer.from(`dynamutex: ${printable(asGiven(line).replace(/\s*\n\s*/g, " "))}\n`);
}
export function printable(text) {
    return text.replace(/\p{Cc}/gu, (character) => {
        const escaped = JSON.stringify(character).slice(1, -1);
        return escaped === character ? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}` : escaped;
    });
}
export function print(text) {
    if (process.stdout.listenerCount("error") === 0)
        process.stdout.on("error", stopPrinting);
    process.stdout.write(text);
}
function stopPrinting(error) {
    if (error.code !== "EPIPE")
        complain(error.message);
    process.exit(error.code === "EPIPE" ? 0 : 1);
}
export const arrayToJson = (members) => members.length === 0 ? "[]" : `[\n${members.map(toJson).join(",\n")}\n]`;
export function toJson(value) {
    const json = JSON.stringify(value, (_, member) => {
        if (typeof member === "bigint")
            return member.toString();
        if (member instanceof Set)
            return [...member];
        if (member instanceof Uint8Array)
            return Buffer.from(member).toString("base64");
        return member;
    });
    return printable(json);
}
