import { register } from "prom-client";
import * as z from "zod/mini";
import { LockConfigError } from "../errors.js";
import { lockNamesOption } from "../metrics/lock-names-option.js";
import { measure } from "../metrics/measure.js";
import { NO_SPANS } from "../metrics/spans.js";
import { optionsCheck, withMethods } from "../options/check.js";
import { instrumentsOn, PROMETHEUS_NAMES } from "./instruments.js";
const METHODS = ["registerMetric", "getSingleMetric", "removeSingleMetric"];
const check = optionsCheck(["instrumentLocks()"], () => ({
    registry: z.optional(withMethods("a Registry of prom-client", METHODS)),
    lockNames: lockNamesOption(),
}));
export function instrumentLocks(options = {}) {
    const { registry = register, lockNames = false } = check(options);
    const present = PROMETHEUS_NAMES.find((name) => registry.getSingleMetric(name) !== undefined);
    if (present !== undefined) {
        const remedy = `has ${present} already: call instrumentLocks() once for each registry, or dispose of the first`;
        throw new LockConfigError("registry", present, remedy);
    }
    let isWarned = false;
    const report = (message, error) => {
        if (!isWarned)
            process.emitWarning(`${message}: ${String(error)}`, "DynamutexWarning");
        isWarned = true;
    };
    const instruments = instrumentsOn(registry, lockNames !== false);
    const measured = measure({ instruments, spans: NO_SPANS, lockNames, report });
    return {
        [Symbol.dispose]: () => {
            measured[Symbol.dispose]();
            for (const name of PROMETHEUS_NAMES)
                registry.removeSingleMetric(name);
        },
    };
}
