import { channel } from "node:diagnostics_channel";
const NAMES = "asked acquired renewed renewal-failed one-by-one wanted lost released missed failed stuck forced release-failed request " +
    "not-shared not-recorded wait-failed ticket-lost permits-differ election clock";
export const CHANNELS = Object.fromEntries(NAMES.split(" ").map((name) => [`dynamutex:${name}`, channel(`dynamutex:${name}`)]));
export function publish(name, message) {
    CHANNELS[name].publish(message);
}
