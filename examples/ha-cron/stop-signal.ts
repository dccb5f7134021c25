/** Aborts when this process should end: on SIGTERM, and when the process that started it is gone. */
export function stopSignal(): AbortSignal {
  const stop = new AbortController();
  process.once("SIGTERM", () => stop.abort());
  process.once("disconnect", () => stop.abort());
  process.channel?.unref();
  return stop.signal;
}
