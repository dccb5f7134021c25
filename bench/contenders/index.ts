import type { Locker, LockerOptions } from "./locker.js";

export type ContenderName =
  | "raw"
  | "bare"
  | "dynamutex"
  | "shared"
  | "before"
  | "fair"
  | "deliveryhero"
  | "lock-client"
  | "verrou"
  | "in-memory";

export interface Contender {
  readonly name: ContenderName;
  readonly title: string;
  /** For charts. */
  readonly short: string;
  /** How it is set up, where that is a choice. */
  readonly settings: string;
  readonly open: (options: LockerOptions) => Promise<Locker>;
}

/** Everybody, in the order of the table's columns. What is not used is not loaded. */
export const CONTENDERS: readonly Contender[] = [
  {
    name: "raw",
    title: "floor",
    short: "floor",
    settings:
      "The two requests that no lock can do without, written by hand on the SDK: the `PutItem` and the `DeleteItem` of " +
      "dynamutex to the byte, on a client as the SDK comes, each with a signal that ends it with the lease, and nothing " +
      "around them.",
    open: async (options) => (await import("./raw.js")).openRaw(options),
  },
  {
    name: "dynamutex",
    title: "dynamutex",
    short: "dynamutex",
    settings: "As it comes, on the table's own clock and with its own client: no option but `ttlMs`.",
    open: async (options) => (await import("./dynamutex.js")).openDynamutex(options),
  },
  {
    name: "fair",
    title: "dynamutex, fair",
    short: "dynamutex, fair",
    settings: "The same with `fair: true`: first come, first served, over all hosts.",
    open: async (options) => (await import("./dynamutex.js")).openDynamutex(options, { fair: true }),
  },
  {
    name: "deliveryhero",
    title: "@deliveryhero/dynamodb-lock",
    short: "deliveryhero",
    settings:
      "2.0.0, `trustLocalTime: true` (a waiter looks at a fixed pace and trusts the hosts' clocks), " +
      "`waitDurationInMs: 100`, `prolongEveryMs` just under half a lease, which is the most it allows. The bench handles " +
      "the rejections of its failed renewals, which nobody else could and which would end the process.",
    open: async (options) => (await import("./deliveryhero.js")).openDeliveryHero(options),
  },
  {
    name: "lock-client",
    title: "dynamodb-lock-client",
    short: "dynamodb-lock-client",
    settings:
      "0.7.3 on aws-sdk 2 with keep-alive, `FailOpen` (the form whose locks end after a crash), `trustLocalTime: true`, " +
      "a heartbeat every half lease, retries without end.",
    open: async (options) => (await import("./lock-client.js")).openLockClient(options),
  },
];

/** Beside the table. */
const OTHERS: readonly Contender[] = [
  {
    name: "verrou",
    title: "@verrou/core",
    short: "Verrou",
    settings: "",
    open: async (options) => (await import("./verrou.js")).openVerrou(options),
  },
  {
    name: "in-memory",
    title: "dynamutex in memory",
    short: "dynamutex in memory",
    settings: "",
    open: async (options) => (await import("./in-memory.js")).openInMemory(options),
  },
  {
    name: "bare",
    title: "floor without signals",
    short: "floor without signals",
    settings: "",
    open: async (options) => (await import("./raw.js")).openBare(options),
  },
  {
    name: "shared",
    title: "dynamutex with a client of the caller's",
    short: "dynamutex, shared client",
    settings: "",
    open: async (options) => (await import("./dynamutex.js")).openShared(options),
  },
  {
    name: "before",
    title: "dynamutex of another checkout",
    short: "dynamutex before",
    settings: "",
    open: async (options) => (await import("./dynamutex.js")).openBefore(options),
  },
];

export function contender(name: ContenderName): Contender {
  const found = [...CONTENDERS, ...OTHERS].find((one) => one.name === name);
  if (found === undefined) throw new Error(`No contender is called ${name}`);
  return found;
}
