import type {
  BatchStatementError,
  CancellationReason,
  ConditionalCheckFailedException,
  TransactionCanceledException,
} from "@aws-sdk/client-dynamodb";
import { LockStoreError } from "../errors.js";
import { paddedKey } from "./padded-key.js";
import { missingPermission, refusedKey } from "./permissions.js";
import { unreachable } from "./unreachable.js";
import { unreadableFile } from "./unreadable-file.js";

/** How far a request came that has no answer. */
export interface Progress {
  /** Whether a copy of it has left. Undefined where the error itself is to tell. */
  readonly hasLeft?: boolean;
  /** Whether the table has been known to answer. */
  readonly isKnown?: boolean;
  /** Whether this process has just seen the table become active: not all of DynamoDB's servers may know of it yet. */
  readonly isNew?: boolean;
}

/** What a request asked for. It goes into the error message. */
export interface RequestContext extends Progress {
  /** The operation as IAM knows it: `PutItem`. */
  readonly action: string;
  readonly tableName: string;
  readonly region?: string | undefined;
  /** How the table's key differs from the options, if that caused the failure. */
  readonly mismatch?: string | undefined;
}

/** The properties of SDK errors and Node errors that matter here. Any of them may be missing. */
interface Failure {
  readonly name: string;
  readonly message: string;
  readonly code?: unknown;
  readonly errno?: unknown;
  readonly $fault?: unknown;
  readonly $metadata?: {
    readonly httpStatusCode?: number;
    readonly attempts?: number;
  };
  /** The SDK's mark on errors that it holds for passing ones. */
  readonly $retryable?: unknown;
  readonly cause?: unknown;
  readonly errors?: unknown;
  readonly CancellationReasons?: readonly { readonly Code?: string }[];
}

/** DynamoDB's names for throttling, as {@link kindOf} gives them. */
const THROTTLING = wordsOf(
  "ProvisionedThroughputExceeded RequestLimitExceeded RequestThrottled SlowDown Throttled Throttling TooManyRequests",
);

/** The names of all transient failures: these, and those on DynamoDB's side, a conflict with another write, or no reply in time. */
const TRANSIENT = wordsOf(
  "Abort InternalFailure InternalServer LimitExceeded ReplicatedWriteConflict RequestTimeout ServiceUnavailable " +
    "Timeout TransactionConflict TransactionInProgress",
  THROTTLING,
);

/** The permission is missing; the engine has none; a gateway, or the caller's client, does not know the request. */
const NO_BATCHES = wordsOf("AccessDenied UnknownOperation Validation Unknown Type Error");

/** The codes of network errors that have no `errno`: Node's, and those of its `fetch`. */
const NETWORK_CODES =
  /^(EAI_AGAIN|ECONN(ABORTED|REFUSED|RESET)|E(HOST|NET)UNREACH|ENOTFOUND|EPIPE|ETIMEDOUT|ERR_HTTP2_STREAM_ERROR|ERR_STREAM_PREMATURE_CLOSE|UND_ERR_.*)$/;

/** What DynamoDB says of a request that is signed with a time that differs from its own. */
const OF_A_WRONG_CLOCK = /Signature (expired|not yet current)/i;

/** The SDK wraps errors of another realm, such as Node's own in Jest's tests, with this message and without their code. */
const FOREIGN_REALM = "AWS SDK error wrapper for ";

/** What to do about errors that are not transient. */
const REMEDIES: Readonly<Record<string, (context: RequestContext, message: string) => string>> = {
  ResourceNotFound: ({ tableName, region }) =>
    `table ${tableName} does not exist${region === undefined ? "" : ` in region ${region}`} for these credentials: ` +
    `\`await locks.create()\` creates it, and so does \`npx dynamutex create-table --table ${tableName}\`, which prints a template with --print`,
  AccessDenied: ({ action, tableName }, message) =>
    refusedKey(message, tableName) ?? missingPermission(action, tableName),
  CredentialsProvider: () =>
    "the AWS SDK found no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, give the " +
    "process a role, or pass a `client` that has credentials",
  ExpiredToken: () =>
    "the credentials have expired. The AWS SDK reads a file of credentials once in a process: renew them and start the process " +
    "again, or use a role or a provider that renews them by itself",
  UnrecognizedClient: () =>
    `DynamoDB does not know these credentials: ${paddedKey() ?? "check the access key, the session token and the region"}`,
  InvalidSignature: () =>
    `DynamoDB refused the signature: ${paddedKey() ?? "check the secret access key, and that the host's clock is right"}`,
};

/** What Node says of a signature that holds a line break. */
const INVALID_HEADER = /^Invalid character in header content/;
const UNSENDABLE_KEY =
  "the AWS access key or session token holds a line break or another character that no HTTP header may hold";
const WHERE_TO_LOOK =
  "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or the secret that they come from, for a newline at the end";

/** What an SDK says of a command that another version of it has made. */
const OTHER_SDK = /\b\w+Middleware(Options)? is not found when adding\b/;
const CLIENT_OF_OTHER_SDK =
  "the `client` is of a version of @aws-sdk/client-dynamodb that does not fit the one which dynamutex uses: install one version " +
  "for both (`npm ls @aws-sdk/client-dynamodb` shows them), or leave `client` out";

/** An error of the SDK's credentials, whose message has this at its end. */
const EXPIRED_SSO =
  "the session of AWS SSO has expired: run `aws sso login`, with --profile for a profile other than the default";

/** Errors with the same remedy as another. */
const SAME_REMEDY: Readonly<Record<string, string>> = {
  TokenProvider: "CredentialsProvider",
  InvalidClientTokenId: "UnrecognizedClient",
  MissingAuthenticationToken: "UnrecognizedClient",
  IncompleteSignature: "InvalidSignature",
};

/** Turns the SDK's error into one of this library, with a remedy in its message. */
export function storeFailure(error: unknown, context: RequestContext): LockStoreError {
  const chain = chainOf(error);
  // A client may wrap what was thrown inside of it.
  const own = chain.find((each) => each instanceof LockStoreError);
  if (own !== undefined) return own;
  const failure = failureOf(error);
  const { action, tableName, hasLeft, isKnown = false, isNew = false } = context;
  const answered = hasLeft !== false && isAnswer(error);
  const isSilence = hasLeft === true && !answered;
  const remedy = remedyFor(failure, context);
  const reason = `${failure.name}: ${failure.message}`;
  const message = remedy === undefined ? `on table ${tableName} failed: ${reason}` : `failed: ${remedy} (${reason})`;
  return new LockStoreError(`${action} ${message}`, {
    cause: error,
    // Until the table has answered once, its address may be wrong, which the caller has to hear soon.
    transient:
      (isSilence && isKnown) ||
      (isNew && kindOf(failure.name) === "ResourceNotFound") ||
      (answered ? mayPass(failure) : chain.some(mayPass)),
    answered,
    throttled: hasLeft !== false && isThrottling(failure),
    // A write that lost against one of another Region may have been applied and then undone, or not: nobody says which.
    retried: isSilence || (failure.$metadata?.attempts ?? 1) > 1 || kindOf(failure.name) === "ReplicatedWriteConflict",
  });
}

/**
 * What one statement of a batch failed of. A code that says for certain that the statement was not applied is an answer;
 * every other, and none, is not: the statement may have been applied.
 */
export function statementFailure(
  { Code, Message: message = "" }: BatchStatementError,
  tableName: string,
): LockStoreError {
  const name: string = Code ?? "";
  const kind = kindOf(name);
  if (!THROTTLING.has(kind) && kind !== "TransactionConflict" && kind !== "Validation" && !(kind in REMEDIES)) {
    const what = name === "" ? "the reply leaves it out" : `${name}: ${message}`;
    const options = { transient: true, answered: false };
    return new LockStoreError(`No answer to one statement of a batch on table ${tableName}: ${what}`, options);
  }
  const error = Object.assign(new Error(message), { name, $fault: "client" });
  return storeFailure(error, { action: "PartiQLUpdate", tableName });
}

/**
 * Whether a batch, or one statement of it, failed because batches cannot be used here. An error without a cause is that of a
 * reply which says nothing of any statement.
 */
export function lacksBatches({ transient, cause }: LockStoreError): boolean {
  return !transient && (cause === undefined || NO_BATCHES.has(kindOf(failureOf(cause).name)));
}

/** Whether a condition was not fulfilled, which is an outcome rather than a failure. */
export function isRefusal(error: unknown): error is ConditionalCheckFailedException {
  return (error as Partial<Error> | undefined)?.name === "ConditionalCheckFailedException";
}

export function isCancellation(error: unknown): error is TransactionCanceledException {
  return (error as Partial<Error> | undefined)?.name === "TransactionCanceledException";
}

/**
 * The reasons why a transaction was cancelled, one for each of its items in order, if a condition was not fulfilled;
 * undefined otherwise. Other reasons beside it do not matter: the refusal of a condition is final.
 */
export function refusalsOf(error: unknown): readonly CancellationReason[] | undefined {
  const reasons = isCancellation(error) ? error.CancellationReasons : undefined;
  return reasons?.some(isRefusedItem) ? reasons : undefined;
}

export const isRefusedItem = ({ Code }: CancellationReason): boolean => Code === "ConditionalCheckFailed";

/** Whether another write was in flight on this item. */
export const isConflict = ({ Code }: CancellationReason): boolean => Code === "TransactionConflict";

/** Whether a transaction was cancelled for transient reasons only. */
export function isPassingCancellation(reasons: readonly { readonly Code?: string | undefined }[]): boolean {
  const codes = reasons.flatMap(({ Code }) => (Code === undefined || Code === "None" ? [] : [Code]));
  return codes.length > 0 && codes.every((code) => TRANSIENT.has(kindOf(code)));
}

/** Whether DynamoDB refused a request for what it is. */
export const isInvalid = (error: unknown): boolean => failureOf(error).name === "ValidationException";

/** Whether DynamoDB refused a request because the table's key is not the one in the request. */
export const isAboutTheKey = (error: unknown): boolean =>
  isInvalid(error) && /\bkeys?\b/i.test(failureOf(error).message);

/** The name less its ending, unless it has nothing else: an error may come as `X`, `XError` or `XException`. */
const kindOf = (name: unknown): string => String(name).replace(/(?<=.)(Error|Exception)$/, "");

/** Whether the failure has one of these names, or the reason of one item of a transaction has. */
function isNamed({ name, CancellationReasons = [] }: Failure, kinds: ReadonlySet<string>): boolean {
  return [name, ...CancellationReasons.map(({ Code }) => Code)].some((each) => kinds.has(kindOf(each)));
}

/** Whether DynamoDB has said this, rather than the network or another server. */
export function isAnswer(error: unknown): boolean {
  const { name, $fault } = failureOf(error);
  return $fault !== undefined && name !== "Unknown" && name !== "Error";
}

function isThrottling(failure: Failure): boolean {
  return failure.$metadata?.httpStatusCode === 429 || isNamed(failure, THROTTLING);
}

/** Whether the same request may succeed later, by what its error says. */
function mayPass(failure: Failure): boolean {
  const { name, message, code, errno, $metadata, $retryable } = failure;
  if (unreadableFile(failure) !== undefined) return false;
  return (
    isThrottling(failure) ||
    isNamed(failure, TRANSIENT) ||
    ($metadata?.httpStatusCode ?? 0) >= 500 ||
    // The SDK has read the right time from the reply and signs the next request with it. It marks each error of a host with a
    // wrong clock as corrected, so the mark alone says nothing.
    (name === "InvalidSignatureException" && OF_A_WRONG_CLOCK.test(message)) ||
    $retryable !== undefined ||
    typeof errno === "number" ||
    message.startsWith(FOREIGN_REALM) ||
    (typeof code === "string" && NETWORK_CODES.test(code))
  );
}

/** An error and what has caused it, each once: the parts of an `AggregateError` too. */
function chainOf(error: unknown): readonly Failure[] {
  // The loop also visits what it adds.
  const chain = new Set([error]);
  for (const part of chain) {
    const { cause, errors } = Object(part) as Partial<Failure>;
    for (const inner of [cause, ...(Array.isArray(errors) ? errors : [])]) if (inner !== undefined) chain.add(inner);
  }
  return [...chain].map(failureOf);
}

function remedyFor(failure: Failure, context: RequestContext): string | undefined {
  if (context.mismatch !== undefined) return context.mismatch;
  if (/\baws sso login\b/.test(failure.message)) return EXPIRED_SSO;
  const kind = kindOf(failure.name);
  const known = REMEDIES[SAME_REMEDY[kind] ?? kind];
  if (known !== undefined) return known(context, failure.message);
  const file = unreadableFile(failure);
  if (file !== undefined) return file;
  if (INVALID_HEADER.test(failure.message)) return `${UNSENDABLE_KEY}: ${paddedKey() ?? WHERE_TO_LOOK}`;
  if (OTHER_SDK.test(failure.message)) return CLIENT_OF_OTHER_SDK;
  const wrongAddress = isAnswer(failure) ? undefined : unreachable(failure);
  if (wrongAddress !== undefined) return wrongAddress;
  if (/region is missing/i.test(failure.message)) {
    return "the AWS SDK knows no region: set AWS_REGION, or pass a `client` that has one";
  }
  const status = failure.$metadata?.httpStatusCode;
  if (status === undefined || isAnswer(failure)) return undefined;
  return `the endpoint answered with status ${status}, but not as DynamoDB does: check the endpoint and what stands before it`;
}

function wordsOf(words: string, others: Iterable<string> = []): ReadonlySet<string> {
  return new Set([...words.split(" "), ...others]);
}

/** Reads an error by its properties: its class differs in another realm and in another copy of the SDK. */
function failureOf(error: unknown): Failure {
  const failure = Object(error) as Failure;
  return typeof failure.message === "string" ? failure : { name: typeof error, message: String(error) };
}
