/** What the command under the lock is told of, if this one is. */
const FORWARDED = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;

export type ForwardedSignal = (typeof FORWARDED)[number];

/** Ends a command that has not begun to do anything for anybody else. */
export function endsWaiting(signal: ForwardedSignal): boolean {
  return signal !== "SIGUSR1" && signal !== "SIGUSR2";
}

/** @returns what takes the handlers off again. */
export function onSignals(handle: (signal: ForwardedSignal) => void): () => void {
  for (const signal of FORWARDED) process.on(signal, handle);
  return () => {
    for (const signal of FORWARDED) process.off(signal, handle);
  };
}
