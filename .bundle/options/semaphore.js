import * as z from "zod/mini";
import { optionsCheck } from "./check.js";
import { mutexSettings, mutexShape } from "./mutex.js";
const MOST_PERMITS = 1_000;
const checkSemaphore = optionsCheck(["locks.semaphore()"], () => ({
    ...mutexShape(),
    permits: z.custom((value) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MOST_PERMITS, `must be a whole number from 1 to ${MOST_PERMITS}, as in { permits: 4 }: how many may hold a permit at once`),
}), { fencing: "is an option of a mutex: several who hold permits at once have no order among them; use a guard" });
export function semaphoreSettings(options, defaults) {
    const { permits, ...mutex } = checkSemaphore(options);
    return { permits, settings: mutexSettings(mutex, defaults) };
}
