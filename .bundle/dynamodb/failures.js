import { LockStoreError } from "../errors.js";
import { missingPermission } from "./permissions.js";
import { unreachable } from "./unreachable.js";
const THROTTLING = wordsOf("ProvisionedThroughputExceeded RequestLimitExceeded RequestThrottled SlowDown Throttled Throttling TooManyRequests");
const TRANSIENT = wordsOf("Abort InternalFailure InternalServer LimitExceeded ReplicatedWriteConflict RequestTimeout ServiceUnavailable " +
    "Timeout TransactionConflict TransactionInProgress", THROTTLING);
const NO_BATCHES = wordsOf("AccessDenied UnknownOperation Validation Unknown Type Error");
const NETWORK_CODES = /^(EAI_AGAIN|ECONN(ABORTED|REFUSED|RESET)|E(HOST|NET)UNREACH|ENOTFOUND|EPIPE|ETIMEDOUT|ERR_HTTP2_STREAM_ERROR|ERR_STREAM_PREMATURE_CLOSE|UND_ERR_.*)$/;
const OF_A_WRONG_CLOCK = /Signature (expired|not yet current)/i;
const FOREIGN_REALM = "AWS SDK error wrapper for ";
const REMEDIES = {
    ResourceNotFound: ({ tableName, region }) => `table ${tableName} does not exist${region === undefined ? "" : ` in region ${region}`} for these credentials: ` +
        `\`await locks.create()\` creates it, and so does \`npx dynamutex create-table --table ${tableName}\`, which prints a template with --print`,
    AccessDenied: ({ action, tableName }) => missingPermission(action, tableName),
    CredentialsProvider: () => "the AWS SDK found no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, give the " +
        "process a role, or pass a `client` that has credentials",
    ExpiredToken: () => "the credentials have expired: refresh them, or use a provider that does so by itself",
    UnrecognizedClient: () => "DynamoDB does not know these credentials: check the access key, the session token and the region",
    InvalidSignature: () => "DynamoDB refused the signature: check the secret access key, and that the host's clock is right",
};
const EXPIRED_SSO = "the session of AWS SSO has expired: run `aws sso login`, with --profile for a profile other than the default";
const SAME_REMEDY = {
    TokenProvider: "CredentialsProvider",
    InvalidClientTokenId: "UnrecognizedClient",
    MissingAuthenticationToken: "UnrecognizedClient",
    IncompleteSignature: "InvalidSignature",
};
export function storeFailure(error, context) {
    const chain = chainOf(error);
    const own = chain.find((each) => each instanceof LockStoreError);
    if (own !== undefined)
        return own;
    const failure = failureOf(error);
    const { action, tableName, hasLeft, isKnown = false } = context;
    const answered = hasLeft !== false && isAnswer(error);
    const isSilence = hasLeft === true && !answered;
    const remedy = remedyFor(failure, context);
    const reason = `${failure.name}: ${failure.message}`;
    const message = remedy === undefined ? `on table ${tableName} failed: ${reason}` : `failed: ${remedy} (${reason})`;
    return new LockStoreError(`${action} ${message}`, {
        cause: error,
        transient: (isSilence && isKnown) || (answered ? mayPass(failure) : chain.some(mayPass)),
        answered,
        throttled: hasLeft !== false && isThrottling(failure),
        retried: isSilence || (failure.$metadata?.attempts ?? 1) > 1 || kindOf(failure.name) === "ReplicatedWriteConflict",
    });
}
export function statementFailure({ Code, Message: message = "" }, tableName) {
    const name = Code ?? "";
    const kind = kindOf(name);
    if (!THROTTLING.has(kind) && kind !== "TransactionConflict" && kind !== "Validation" && !(kind in REMEDIES)) {
        const what = name === "" ? "the reply leaves it out" : `${name}: ${message}`;
        const options = { transient: true, answered: false };
        return new LockStoreError(`No answer to one statement of a batch on table ${tableName}: ${what}`, options);
    }
    const error = Object.assign(new Error(message), { name, $fault: "client" });
    return storeFailure(error, { action: "PartiQLUpdate", tableName });
}
export function lacksBatches({ transient, cause }) {
    return !transient && (cause === undefined || NO_BATCHES.has(kindOf(failureOf(cause).name)));
}
export function isRefusal(error) {
    return error?.name === "ConditionalCheckFailedException";
}
export function isCancellation(error) {
    return error?.name === "TransactionCanceledException";
}
export function refusalsOf(error) {
    const reasons = isCancellation(error) ? error.CancellationReasons : undefined;
    return reasons?.some(isRefusedItem) ? reasons : undefined;
}
export const isRefusedItem = ({ Code }) => Code === "ConditionalCheckFailed";
export const isConflict = ({ Code }) => Code === "TransactionConflict";
export function isPassingCancellation(reasons) {
    const codes = reasons.flatMap(({ Code }) => (Code === undefined || Code === "None" ? [] : [Code]));
    return codes.length > 0 && codes.every((code) => TRANSIENT.has(kindOf(code)));
}
export const isInvalid = (error) => failureOf(error).name === "ValidationException";
export const isAboutTheKey = (error) => isInvalid(error) && /\bkeys?\b/i.test(failureOf(error).message);
const kindOf = (name) => String(name).replace(/(?<=.)(Error|Exception)$/, "");
function isNamed({ name, CancellationReasons = [] }, kinds) {
    return [name, ...CancellationReasons.map(({ Code }) => Code)].some((each) => kinds.has(kindOf(each)));
}
export function isAnswer(error) {
    const { name, $fault } = failureOf(error);
    return $fault !== undefined && name !== "Unknown" && name !== "Error";
}
function isThrottling(failure) {
    return failure.$metadata?.httpStatusCode === 429 || isNamed(failure, THROTTLING);
}
function mayPass(failure) {
    const { name, message, code, errno, $metadata, $retryable } = failure;
    return (isThrottling(failure) ||
        isNamed(failure, TRANSIENT) ||
        ($metadata?.httpStatusCode ?? 0) >= 500 ||
        (name === "InvalidSignatureException" && OF_A_WRONG_CLOCK.test(message)) ||
        $retryable !== undefined ||
        typeof errno === "number" ||
        message.startsWith(FOREIGN_REALM) ||
        (typeof code === "string" && NETWORK_CODES.test(code)));
}
function chainOf(error) {
    const chain = new Set([error]);
    for (const part of chain) {
        const { cause, errors } = Object(part);
        for (const inner of [cause, ...(Array.isArray(errors) ? errors : [])])
            if (inner !== undefined)
                chain.add(inner);
    }
    return [...chain].map(failureOf);
}
function remedyFor(failure, context) {
    if (context.mismatch !== undefined)
        return context.mismatch;
    if (/\baws sso login\b/.test(failure.message))
        return EXPIRED_SSO;
    const kind = kindOf(failure.name);
    const known = REMEDIES[SAME_REMEDY[kind] ?? kind];
    if (known !== undefined)
        return known(context);
    const wrongAddress = isAnswer(failure) ? undefined : unreachable(failure);
    if (wrongAddress !== undefined)
        return wrongAddress;
    if (/region is missing/i.test(failure.message)) {
        return "the AWS SDK knows no region: set AWS_REGION, or pass a `client` that has one";
    }
    const status = failure.$metadata?.httpStatusCode;
    if (status === undefined || isAnswer(failure))
        return undefined;
    return `the endpoint answered with status ${status}, but not as DynamoDB does: check the endpoint and what stands before it`;
}
function wordsOf(words, others = []) {
    return new Set([...words.split(" "), ...others]);
}
function failureOf(error) {
    const failure = Object(error);
    return typeof failure.message === "string" ? failure : { name: typeof error, message: String(error) };
}
