import type {
  CancellationReason,
  ConditionalCheckFailedException,
  TransactionCanceledException,
} from "@aws-sdk/client-dynamodb";
import { LockStoreError } from "../errors.js";

/** What was asked of which table, for the message. */
export interface Asked {
  /** The operation as IAM knows it: `PutItem`. */
  readonly action: string;
  readonly tableName: string;
  readonly region?: string | undefined;
  /** How the table's key differs from the options, if that is known to be the matter. */
  readonly mismatch?: string | undefined;
}

/** What the SDK's errors have in common, and some of Node's. All of it may be missing. */
interface Failure {
  readonly name: string;
  readonly message: string;
  readonly code?: unknown;
  readonly errno?: unknown;
  readonly $fault?: unknown;
  readonly $metadata?: {
    readonly httpStatusCode?: number;
    readonly attempts?: number;
    readonly clockSkewCorrected?: boolean;
  };
  readonly CancellationReasons?: readonly { readonly Code?: string }[];
}

/** DynamoDB's names for throttling. */
const THROTTLING = new Set([
  "ProvisionedThroughputExceeded",
  "ProvisionedThroughputExceededException",
  "RequestLimitExceeded",
  "RequestThrottled",
  "RequestThrottledException",
  "SlowDown",
  "ThrottledException",
  "Throttling",
  "ThrottlingError",
  "ThrottlingException",
  "TooManyRequestsException",
]);

/** DynamoDB's own ways to say "not now": throttling, trouble of its own, another write in the same instant. */
const PASSING = new Set([
  ...THROTTLING,
  "InternalFailure",
  "InternalServerError",
  "InternalServerException",
  "LimitExceededException",
  "ReplicatedWriteConflictException",
  "RequestTimeout",
  "RequestTimeoutException",
  "ServiceUnavailable",
  "ServiceUnavailableException",
  "TransactionConflict",
  "TransactionConflictException",
  "TransactionInProgressException",
]);

/** No reply: the SDK's names for it. */
const UNANSWERED = new Set(["AbortError", "TimeoutError"]);

/** The network's codes that come without the number of a system call. */
const NETWORK_CODES = new Set([
  "EAI_AGAIN",
  "ECONNABORTED",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EPIPE",
  "ERR_HTTP2_STREAM_ERROR",
  "ERR_STREAM_PREMATURE_CLOSE",
  "ETIMEDOUT",
]);

/** What the SDK makes of Node's own errors where tests run in a realm of their own, as Jest's do: the code is lost. */
const FOREIGN_REALM = "AWS SDK error wrapper for ";

/** What to do about the errors that do not pass by themselves. */
const REMEDIES: Readonly<Record<string, (asked: Asked) => string>> = {
  ResourceNotFoundException: ({ tableName, region }) =>
    `table ${tableName} does not exist${region === undefined ? "" : ` in region ${region}`} for these credentials: ` +
    "`await locks.create()` creates it, and so does the CloudFormation template in the README",
  AccessDeniedException: ({ action, tableName }) =>
    `these credentials lack the permission dynamodb:${action} on table ${tableName}: the README lists what locks need`,
  CredentialsProviderError: () =>
    "the AWS SDK found no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, give the " +
    "process a role, or pass a `client` that has credentials",
  ExpiredTokenException: () => "the credentials have expired: refresh them, or use a provider that does so by itself",
  UnrecognizedClientException: () =>
    "DynamoDB does not know these credentials: check the access key, the session token and the region",
  InvalidSignatureException: () =>
    "DynamoDB refused the signature: check the secret access key, and that the host's clock is right",
};

/** Other names of the same. */
const ALSO: Readonly<Record<string, string>> = {
  AccessDenied: "AccessDeniedException",
  TokenProviderError: "CredentialsProviderError",
  ExpiredToken: "ExpiredTokenException",
  InvalidClientTokenId: "UnrecognizedClientException",
  MissingAuthenticationTokenException: "UnrecognizedClientException",
  IncompleteSignatureException: "InvalidSignatureException",
};

/** The SDK's error as one of ours, with what to do about it. */
export function storeFailure(error: unknown, asked: Asked): LockStoreError {
  if (error instanceof LockStoreError) return error;
  const failure = failureOf(error);
  const { action, tableName } = asked;
  const remedy = remedyFor(failure, asked);
  const said = `${failure.name}: ${failure.message}`;
  return new LockStoreError(
    remedy === undefined ? `${action} on table ${tableName} failed: ${said}` : `${action} failed: ${remedy} (${said})`,
    {
      cause: error,
      transient: isPassing(failure),
      answered: isAnswer(failure),
      throttled: isThrottling(failure),
      retried: (failure.$metadata?.attempts ?? 1) > 1,
    },
  );
}

/** Whether a condition was not fulfilled, which is an outcome rather than a failure. */
export function isRefusal(error: unknown): error is ConditionalCheckFailedException {
  return (error as Partial<Error> | undefined)?.name === "ConditionalCheckFailedException";
}

/**
 * Why a transaction was cancelled, for each of its items in order, where a condition was among the reasons; undefined
 * for everything else. A condition that refuses stands, whatever else was the matter at that moment.
 */
export function refusalsOf(error: unknown): readonly CancellationReason[] | undefined {
  if (!isCancellation(error)) return undefined;
  return error.CancellationReasons?.some(isRefusedItem) ? error.CancellationReasons : undefined;
}

export function isCancellation(error: unknown): error is TransactionCanceledException {
  return (error as Partial<Error> | undefined)?.name === "TransactionCanceledException";
}

/** Whether this item's condition was not fulfilled. */
export function isRefusedItem({ Code }: CancellationReason): boolean {
  return Code === "ConditionalCheckFailed";
}

/** Whether another write was under way on this item's row. */
export function isConflict({ Code }: CancellationReason): boolean {
  return Code === "TransactionConflict";
}

/** Whether nothing but "not now" stood against a transaction: no condition, and nothing wrong with it. */
export function isPassingCancellation(reasons: readonly { readonly Code?: string | undefined }[]): boolean {
  const codes = reasons.flatMap(({ Code }) => (Code === undefined || Code === "None" ? [] : [Code]));
  return codes.length > 0 && codes.every((code) => PASSING.has(code));
}

/** Whether a table's key is not what the request took it for. */
export function isAboutTheKey(error: unknown): boolean {
  const { name, message } = failureOf(error);
  return name === "ValidationException" && /\bkeys?\b/i.test(message);
}

/** Whether DynamoDB gave this reply, by its name: not the network, and not some other server. */
function isAnswer(failure: { readonly name: string; readonly $fault?: unknown }): boolean {
  return failure.$fault !== undefined && failure.name !== "Unknown" && failure.name !== "Error";
}

/** Whether the request, or an item of the transaction, was refused because there were too many. */
function isThrottling({ name, $metadata, CancellationReasons }: Failure): boolean {
  return (
    THROTTLING.has(name) ||
    $metadata?.httpStatusCode === 429 ||
    CancellationReasons?.some(({ Code }) => Code !== undefined && THROTTLING.has(Code)) === true
  );
}

function isPassing(failure: Failure): boolean {
  const { name, message, code, errno, $metadata, CancellationReasons } = failure;
  const status = $metadata?.httpStatusCode ?? 0;
  return (
    PASSING.has(name) ||
    UNANSWERED.has(name) ||
    status >= 500 ||
    status === 429 ||
    // The SDK saw from the reply that the host's clock is wrong, and signs the next request by the table's.
    $metadata?.clockSkewCorrected === true ||
    (name === "InvalidSignatureException" && message.includes("Signature expired")) ||
    CancellationReasons?.some(({ Code }) => Code !== undefined && PASSING.has(Code)) === true ||
    typeof errno === "number" ||
    message.startsWith(FOREIGN_REALM) ||
    (typeof code === "string" && NETWORK_CODES.has(code))
  );
}

function remedyFor(failure: Failure, asked: Asked): string | undefined {
  if (asked.mismatch !== undefined) return asked.mismatch;
  const known = REMEDIES[ALSO[failure.name] ?? failure.name];
  if (known !== undefined) return known(asked);
  if (/region is missing/i.test(failure.message)) {
    return "the AWS SDK knows no region: set AWS_REGION, or pass a `client` that has one";
  }
  const status = failure.$metadata?.httpStatusCode;
  if (status === undefined || isAnswer(failure)) return undefined;
  return `the endpoint answered with status ${status}, but not as DynamoDB does: check the endpoint and what stands before it`;
}

/** By its properties and not by its class, which is another one in another realm or another copy of the SDK. */
function failureOf(error: unknown): Failure {
  const failure = Object(error) as Failure;
  return typeof failure.message === "string" ? failure : { name: typeof error, message: String(error) };
}
