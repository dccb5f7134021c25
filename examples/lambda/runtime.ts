/** What Lambda's runtime does, in short: it loads the handler once, and calls it with each event. Started by environment.ts. */

import { handler } from "./handler.js";

export interface Invocation {
  readonly event: { readonly order: string };
  readonly requestId: string;
  readonly timeoutMs: number;
}

process.on("message", async ({ event, requestId, timeoutMs }: Invocation) => {
  const endsAt = Date.now() + timeoutMs;
  const context = { awsRequestId: requestId, getRemainingTimeInMillis: () => endsAt - Date.now() };
  try {
    const { statusCode, body } = await handler(event, context);
    process.send?.(`${statusCode} ${body}`);
  } catch (error) {
    process.send?.(`fails: ${error instanceof Error ? error.name : error}`);
  }
});
process.send?.("ready");
