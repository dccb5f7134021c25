import { writeSync } from "node:fs";

/**
 * What a test has run under a lock: it tells of each signal, and ends with code 7 at the one that it is given, or at none.
 * `node section.js SIGTERM`
 */
const [endsAt] = process.argv.slice(2);

const say = (line: string): void => void writeSync(1, `${line}\n`);

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const) {
  process.on(signal, () => {
    say(`got ${signal}`);
    if (signal === endsAt) process.exit(7);
  });
}
setInterval(() => undefined, 60_000);
say(`began ${process.pid} under ${process.ppid}`);
