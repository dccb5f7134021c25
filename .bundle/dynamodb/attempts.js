import { isSigned } from "./table-sign.js";
const NEXT_TO_THE_NETWORK = { step: "deserialize", priority: "low", name: "dynamutexAttempts" };
const CONTEXT = Symbol("dynamutex");
const ownClients = new WeakSet();
export const isOwn = (client) => ownClients.has(client);
export function adopt(client, exchange) {
    ownClients.add(client);
    client.middlewareStack.add((next) => (args) => {
        const context = contextOf(args.input);
        if (context === undefined)
            return exchange(() => next(args));
        const { requestHandler: handler } = client.config;
        const request = args.request;
        return attempt(context, () => exchange(() => handler.handle(request, { abortSignal: context.signal })));
    }, NEXT_TO_THE_NETWORK);
    return client;
}
export async function sendThrough(client, command, context) {
    command.input[CONTEXT] = context;
    const asGet = command;
    if (isOwn(client))
        return await client.send(asGet);
    asGet.middlewareStack.add((next) => (args) => {
        const own = contextOf(args.input);
        return own === undefined ? next(args) : attempt(own, () => next(args));
    }, NEXT_TO_THE_NETWORK);
    return await client.send(asGet, { abortSignal: context.signal });
}
function contextOf(input) {
    return input[CONTEXT];
}
async function attempt(context, send) {
    context.signal.throwIfAborted();
    context.attempts += 1;
    const heard = context.listen();
    if (heard !== undefined)
        context.heard = heard;
    const result = await send();
    const { headers = {}, statusCode, body } = (result.response ?? {});
    const hasSign = isSigned(headers);
    const foreign = context.judge(hasSign, statusCode);
    if (foreign !== undefined) {
        discard(body);
        throw foreign;
    }
    if (headers.date !== undefined && hasSign) {
        context.isTold = true;
        heard?.(headers.date);
    }
    return result;
}
function discard(body) {
    body?.destroy?.();
    void body?.cancel?.().catch(() => undefined);
}
