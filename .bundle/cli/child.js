var __addDisposableResource = (this && this.__addDisposableResource) || function (env, value, async) {
    if (value !== null && value !== void 0) {
        if (typeof value !== "object" && typeof value !== "function") throw new TypeError("Object expected.");
        var dispose, inner;
        if (async) {
            if (!Symbol.asyncDispose) throw new TypeError("Symbol.asyncDispose is not defined.");
            dispose = value[Symbol.asyncDispose];
        }
        if (dispose === void 0) {
            if (!Symbol.dispose) throw new TypeError("Symbol.dispose is not defined.");
            dispose = value[Symbol.dispose];
            if (async) inner = dispose;
        }
        if (typeof dispose !== "function") throw new TypeError("Object not disposable.");
        if (inner) dispose = function() { try { inner.call(this); } catch (e) { return Promise.reject(e); } };
        env.stack.push({ value: value, dispose: dispose, async: async });
    }
    else if (async) {
        env.stack.push({ async: true });
    }
    return value;
};
var __disposeResources = (this && this.__disposeResources) || (function (SuppressedError) {
    return function (env) {
        function fail(e) {
            env.error = env.hasError ? new SuppressedError(e, env.error, "An error was suppressed during disposal.") : e;
            env.hasError = true;
        }
        var r, s = 0;
        function next() {
            while (r = env.stack.pop()) {
                try {
                    if (!r.async && s === 1) return s = 0, env.stack.push(r), Promise.resolve().then(next);
                    if (r.dispose) {
                        var result = r.dispose.call(r.value);
                        if (r.async) return s |= 2, Promise.resolve(result).then(next, function(e) { fail(e); return next(); });
                    }
                    else s |= 1;
                }
                catch (e) {
                    fail(e);
                }
            }
            if (s === 1) return env.hasError ? Promise.reject(env.error) : Promise.resolve();
            if (env.hasError) throw env.error;
        }
        return next();
    };
})(typeof SuppressedError === "function" ? SuppressedError : function (error, suppressed, message) {
    var e = new Error(message);
    return e.name = "SuppressedError", e.error = error, e.suppressed = suppressed, e;
});
import { spawn } from "node:child_process";
import { addAbortListener, once } from "node:events";
import { systemClock } from "../index.js";
import { EXIT, exitCodeOf, Failure } from "./failure.js";
import { mention } from "./output.js";
import { companionsGiven, hasTerminal, processesGiven, processesIn, reachedTheGroup } from "./processes.js";
export const FORWARDED = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"];
const OUTER = "DYNAMUTEX_OUTER_UUIDS";
const LOOK_MS = 50;
export class Child {
    wasToldOfLoss = false;
    #command;
    #env = { ...process.env };
    #clock = systemClock();
    #hasOwnGroup = !hasTerminal() && process.platform !== "win32";
    #process;
    #askedBy;
    #isKilled = false;
    constructor(command) {
        this.#command = command;
    }
    get preventedBy() {
        return this.#process === undefined ? this.#askedBy : undefined;
    }
    get hasBegun() {
        return this.#process?.pid !== undefined;
    }
    forward(signal) {
        if (signal !== "SIGUSR1" && signal !== "SIGUSR2")
            this.#askedBy ??= signal;
        if (this.#hasOwnGroup || !reachedTheGroup(signal))
            this.#signal(signal);
    }
    async run(lock, killAfterMs) {
        const env_1 = { stack: [], error: void 0, hasError: false };
        try {
            if (this.preventedBy !== undefined)
                throw new Failure("a signal came first", exitCodeOf(this.preventedBy));
            lock.assertHeld();
            Object.assign(this.#env, variablesOf(lock));
            let cancelKill = () => undefined;
            const _ = __addDisposableResource(env_1, addAbortListener(lock.signal, () => {
                this.wasToldOfLoss = true;
                cancelKill = this.#clock.alarm(killAfterMs, () => {
                    this.#isKilled = true;
                    this.#signal("SIGKILL", this.#nested());
                });
                this.#signal("SIGTERM");
                mention(`${lock.signal.reason.message}; ${this.#command[0]} is told to end`);
            }), false);
            try {
                const { exitCode, signalCode } = await this.#exited();
                const isToldToEnd = () => this.#askedBy !== undefined || this.wasToldOfLoss;
                while (isToldToEnd() && !this.#isKilled && this.#isLeft())
                    await this.#clock.sleep(LOOK_MS);
                return exitCode ?? exitCodeOf(signalCode ?? "SIGKILL");
            }
            finally {
                cancelKill();
            }
        }
        catch (e_1) {
            env_1.error = e_1;
            env_1.hasError = true;
        }
        finally {
            __disposeResources(env_1);
        }
    }
    async #exited() {
        const [command = "", ...args] = this.#command;
        try {
            this.#process = spawn(command, args, { env: this.#env, stdio: "inherit", detached: this.#hasOwnGroup });
            await once(this.#process, "exit");
            return this.#process;
        }
        catch (error) {
            const { code, message } = error;
            const exitCode = code === "ENOENT" ? EXIT.notFound : EXIT.cannotExecute;
            throw new Failure(`${command} could not be started: ${message}`, exitCode, { cause: error });
        }
    }
    #signal(signal, others = []) {
        const { pid, exitCode, signalCode } = this.#process ?? {};
        if (pid === undefined)
            return;
        const itself = exitCode === null && signalCode === null ? [pid] : [];
        const targets = this.#hasOwnGroup ? [-pid] : [...itself, ...this.#companions()];
        for (const target of new Set([...targets, ...others])) {
            try {
                process.kill(target, signal);
            }
            catch (error) {
                const { code, message } = error;
                if (code !== "ESRCH")
                    mention(`${this.#command[0]} gets no signals of this user: ${message}`);
            }
        }
    }
    #isLeft() {
        if (this.wasToldOfLoss && this.#nested().length > 0)
            return true;
        if (!this.#hasOwnGroup)
            return this.#companions().length > 0;
        const pid = this.#process?.pid ?? 0;
        try {
            process.kill(-pid, 0);
        }
        catch (error) {
            return error.code === "EPERM";
        }
        return processesIn(pid)?.length !== 0;
    }
    #nested() {
        return processesGiven(OUTER, (uuids) => uuids.split(" ").includes(this.#env.DYNAMUTEX_UUID ?? ""));
    }
    #companions() {
        return companionsGiven("DYNAMUTEX_UUID", this.#env.DYNAMUTEX_UUID);
    }
}
function variablesOf(lock) {
    return {
        DYNAMUTEX_NAME: lock.name,
        DYNAMUTEX_UUID: lock.uuid,
        [OUTER]: [process.env[OUTER], process.env.DYNAMUTEX_UUID].filter(Boolean).join(" ") || undefined,
        DYNAMUTEX_FENCING_TOKEN: "fencingToken" in lock ? lock.fencingToken.toString() : undefined,
        DYNAMUTEX_PERMIT: "permit" in lock ? lock.permit.toString() : undefined,
        DYNAMUTEX_PERMITS: "permits" in lock && lock.permits.length > 1 ? lock.permits.join(" ") : undefined,
        DYNAMUTEX_ATTEMPT: lock.attempt?.toString(),
        DYNAMUTEX_TICK: lock.tick?.toString(),
    };
}
