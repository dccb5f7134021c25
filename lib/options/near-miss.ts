/** Options of the AWS SDK's client that people give to a `LockTable`: how it spells them, and what says the same in the environment. */
const CLIENT_OPTIONS: Readonly<Record<string, readonly [spelt: string, variable?: string]>> = {
  endpoint: ["endpoint", "AWS_ENDPOINT_URL_DYNAMODB"],
  endpointUrl: ["endpoint", "AWS_ENDPOINT_URL_DYNAMODB"],
  region: ["region", "AWS_REGION"],
  credentials: ["credentials", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"],
  accessKeyId: ["credentials", "AWS_ACCESS_KEY_ID"],
  secretAccessKey: ["credentials", "AWS_SECRET_ACCESS_KEY"],
  sessionToken: ["credentials", "AWS_SESSION_TOKEN"],
  profile: ["profile", "AWS_PROFILE"],
  maxAttempts: ["maxAttempts"],
  requestHandler: ["requestHandler"],
  logger: ["logger"],
};

/** The option of the AWS SDK's client that this is, or is a typo of. */
export function clientOptionNear(name: string): string | undefined {
  return nearest(name, Object.keys(CLIENT_OPTIONS));
}

/** What to do about an option that belongs to the AWS SDK's client. */
export function elsewhere(option: string): string {
  const [spelt, variable] = CLIENT_OPTIONS[option] ?? [option];
  const inEnvironment = variable === undefined ? "" : `set ${variable} in the environment, or `;
  return `is not an option here, but one of the AWS SDK's client: ${inEnvironment}pass client: new DynamoDBClient({ ${spelt}: … })`;
}

/** The value of a refused option for the error, which somebody logs: what is or has a secret is left out. */
export function withoutSecrets(option: string, value: unknown): unknown {
  const names = [option.split(".").at(-1) ?? option, ...Object.keys(Object(value))];
  return names.some(isSecret) ? "not shown" : value;
}

function isSecret(name: string): boolean {
  return CLIENT_OPTIONS[clientOptionNear(name) ?? ""]?.[0] === "credentials";
}

/** What other locks, and the rest of AWS and Node, call the options of these names: without underscores, units and capitals. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  tableName: ["table"],
  waitMs: [
    "timeout",
    "acquiretimeout",
    "acquisitiontimeout",
    "locktimeout",
    "maxwait",
    "maxwaittime",
    "waittimeout",
    "waittime",
    "within",
  ],
  timeoutMs: ["timeout", "waittimeout", "maxwait", "within"],
  validForMs: ["within", "expires", "expiresin"],
  ttlMs: ["lease", "leaseduration", "leasetime", "lockttl", "expiry"],
  renewEveryMs: ["heartbeat", "heartbeatperiod", "heartbeatinterval", "renewinterval", "refreshinterval"],
  autoRenew: ["autoextend", "autoextension", "autorefresh", "keepalive"],
  signal: ["abortsignal", "abort", "abortcontroller"],
  permits: ["limit", "maxconcurrency", "concurrency", "capacity"],
  partition: ["pk", "partitionkey", "hash", "hashkey", "partitionkeyname", "name"],
  sort: ["sk", "sortkey", "range", "rangekey", "sortkeyname"],
  ttl: ["ttlattribute", "ttlkey", "purge", "expiresat"],
};

/** Our names for what others call so. */
export function aliasesOf(name: string): readonly string[] {
  return Object.keys(ALIASES).filter((option) => ALIASES[option]?.includes(plain(name)));
}

const KEYS =
  "is not an option here: name the table's keys with keys: { partition: …, sort: …, ttl: … } of new LockTable()";
const NO_RETRIES =
  "is not an option: there are no retries to count. lock() and run() wait until waitMs is over and read the lock every poll.minMs " +
  "to poll.maxMs, all in milliseconds, and failed requests are retried while there is time";
const RENEWS = "is not an option: a lock renews itself every renewEveryMs, in milliseconds, until it is released";

/** What there is in the place of an option of others, where it is not one option under another name. */
const INSTEAD: Readonly<Record<string, string>> = {
  retrycount: NO_RETRIES,
  retries: NO_RETRIES,
  retry: NO_RETRIES,
  maxretries: NO_RETRIES,
  retrydelay: NO_RETRIES,
  retryinterval: NO_RETRIES,
  retryjitter: NO_RETRIES,
  pollinterval:
    "is not an option: the pause between two reads of a held lock is poll: { minMs: …, maxMs: … }, in milliseconds",
  automaticextensionthreshold: RENEWS,
  extendinterval: RENEWS,
  pk: KEYS,
  partitionkey: KEYS,
  hashkey: KEYS,
  sk: KEYS,
  sortkey: KEYS,
  rangekey: KEYS,
  ttlattribute: KEYS,
};

/** What there is in the place of an option that others have. */
export function insteadOf(name: string): string | undefined {
  const given = plain(name);
  return Object.hasOwn(INSTEAD, given) ? INSTEAD[given] : undefined;
}

/** Half an hour, one and more hours, a day and a week, in seconds: as milliseconds, they are 1.8 s and so on. */
export const LONG_IN_SECONDS: readonly number[] = [
  1_800, 3_600, 7_200, 10_800, 14_400, 21_600, 28_800, 43_200, 86_400, 604_800,
];

/**
 * What a hint at an option says of the unit of a duration, behind the sentence that names it.
 * @param given the name in its place, which may say a unit itself.
 * @param value what it was given: seconds, by its looks, are told in milliseconds as well.
 */
export function unitOf(option: string, given: string, value: unknown): string {
  if (!option.endsWith("Ms") || /(ms|millis(econds)?)$/i.test(given)) return "";
  const isMeant = (seconds: number): boolean =>
    /sec(ond)?s?$/i.test(given) || (seconds > 0 && seconds < 1_000) || LONG_IN_SECONDS.includes(seconds);
  const isSeconds = typeof value === "number" && Number.isFinite(value) && isMeant(value);
  return `It is in milliseconds${isSeconds ? `: ${value} seconds are ${Math.round(value * 1_000)}` : ""}`;
}

/** The name that somebody meant: equal except for case, underscores or a unit, or a typo away. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const given = plain(name);
  // A third of a short word could be any other word.
  const within = (typos: number) =>
    known.find((option) => typos <= option.length / 4 && isNear(given, plain(option), typos));
  return within(0) ?? within(1) ?? within(2);
}

function plain(name: string): string {
  return name
    .replaceAll(/[_-]/g, "")
    .replace(/((?<!with)in)?(ms|millis(econds)?|sec(ond)?s?)$/i, "")
    .toLowerCase();
}

/** Whether so few letters at most are missing, too many, wrong, or swapped with their neighbour. */
function isNear(a: string, b: string, typos: number): boolean {
  if (a === b || typos === 0) return a === b;
  if (a[0] === b[0]) return isNear(a.slice(1), b.slice(1), typos);
  const isSwapped = a[0] === b[1] && a[1] === b[0];
  return (
    isNear(a.slice(1), b, typos - 1) ||
    isNear(a, b.slice(1), typos - 1) ||
    isNear(a.slice(1), b.slice(1), typos - 1) ||
    (isSwapped && isNear(a.slice(2), b.slice(2), typos - 1))
  );
}
