import { Call } from "../taking/call.js";
import { runFor } from "../taking/wait.js";
export async function adminRequest(session, request, { signal } = {}) {
    session.assertOpen();
    signal?.throwIfAborted();
    const call = new Call(session, undefined, { signal });
    return await runFor(session, call, async (wait) => call.settle(await wait.ask(request)));
}
