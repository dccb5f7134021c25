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
import { accessSync, constants, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { basename, delimiter, join } from "node:path";
import { EXIT, Failure } from "./failure.js";
const FIRST_LINE_BYTES = 256;
const DEFAULT_PATH = "/bin:/usr/bin";
const MOST_INTERPRETERS = 4;
export async function findCommand(command) {
    if (process.platform === "win32")
        return;
    const remedy = command.includes("/") ? "correct its path" : "give its path, or correct PATH";
    let file = located(command, remedy);
    for (let depth = 0; depth < MOST_INTERPRETERS; depth++) {
        const [, interpreter, argument = ""] = /^#![ \t]*([^ \t\n]+)[ \t]*(.*)/.exec(await beginningOf(file)) ?? [];
        if (interpreter === undefined)
            return;
        const fix = interpreter.endsWith("\r")
            ? `${file} ends its lines with \r, as on Windows: save it with the line ends of Unix`
            : `it is the interpreter of ${file}: install it, or correct the first line of the script`;
        const program = basename(interpreter) === "env" ? soughtByEnv(argument) : undefined;
        file = located(interpreter.includes("/") ? interpreter : `./${interpreter}`, fix);
        if (program !== undefined)
            file = located(program, fix);
    }
}
function soughtByEnv(argument) {
    const split = /^-S[ \t]*(.*)/.exec(argument)?.[1]?.split(/[ \t]+/);
    const program = split === undefined ? argument : split.find((word) => !word.includes("="));
    return program === undefined || /^-|^$|[\\"'$]/.test(program) ? undefined : program;
}
function located(command, remedy) {
    const folders = (process.env.PATH ?? DEFAULT_PATH).split(delimiter);
    const files = command.includes("/") ? [command] : folders.map((folder) => join(folder || ".", command));
    let isForbidden = false;
    for (const file of files) {
        try {
            accessSync(file, constants.X_OK);
            if (statSync(file).isFile())
                return file;
            isForbidden = true;
        }
        catch (error) {
            isForbidden ||= error.code === "EACCES";
        }
    }
    if (!isForbidden)
        throw new Failure(`${command} was not found: ${remedy}`, EXIT.notFound);
    throw new Failure(`${command} cannot be executed: it is a folder, or chmod +x is missing`, EXIT.cannotExecute);
}
async function beginningOf(file) {
    try {
        const env_1 = { stack: [], error: void 0, hasError: false };
        try {
            const handle = __addDisposableResource(env_1, await open(file), true);
            const { buffer, bytesRead } = await handle.read(Buffer.alloc(FIRST_LINE_BYTES));
            return buffer.toString("utf8", 0, bytesRead);
        }
        catch (e_1) {
            env_1.error = e_1;
            env_1.hasError = true;
        }
        finally {
            const result_1 = __disposeResources(env_1);
            if (result_1)
                await result_1;
        }
    }
    catch {
        return "";
    }
}
