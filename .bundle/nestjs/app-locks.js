import { Logger } from "@nestjs/common";
import { LockConfigError } from "../errors.js";
import { closeOptions } from "../options/calls.js";
export class AppLocks {
    table;
    #drainMs;
    #classes = new Map();
    #isStopping = false;
    constructor(table, drainMs) {
        closeOptions({ drainMs });
        this.table = table;
        this.#drainMs = drainMs;
    }
    get isStopping() {
        return this.#isStopping;
    }
    claimTicks(instance, method) {
        const { constructor: made } = instance;
        const name = tickNameOf(instance, method);
        const first = this.#classes.get(name) ?? made;
        this.#classes.set(name, first);
        if (first === made && made.name !== "")
            return;
        throw new LockConfigError("name", name, "is not the name of one class alone: give @OncePer() a name of its own");
    }
    onModuleDestroy() {
        this.#isStopping = true;
    }
    async onApplicationShutdown() {
        try {
            await this.table.close({ drainMs: this.#drainMs });
        }
        catch (error) {
            new Logger("LockModule").error(error);
        }
    }
}
export function tickNameOf({ constructor: { name } }, method) {
    return `${name}.${method}`;
}
