/** The IAM actions that `check()` tries, without the prefix `dynamodb:`. */
export type TableAction =
  | "DescribeTable"
  | "DescribeTimeToLive"
  | "GetItem"
  | "PutItem"
  | "UpdateItem"
  | "DeleteItem"
  | "Query"
  | "Scan"
  | "ConditionCheckItem";

/** A reason why locks do not work on a table, or work only in part. */
export interface TableProblem {
  /**
   * `missing`: the table does not exist. `status`: it cannot be used at present. `keys`: its key differs from the options. `index`: an index
   * has an attribute of our rows in its key, with another type.
   * `permission`: an action is refused. `ttl`: DynamoDB does not remove the rows of dead holders. `billing`: its capacity
   * is limited. `replicas`: it is a global table. `permits`: hosts disagree on how many permits a semaphore has. `row`: an item
   * under a permit's key is not one that this library writes. `request`: it refuses a request for another reason.
   */
  readonly code:
    | "missing"
    | "status"
    | "keys"
    | "index"
    | "permission"
    | "ttl"
    | "billing"
    | "replicas"
    | "permits"
    | "row"
    | "request";
  /** `error`: locks do not work. `warning`: they work, and the message says what does not. */
  readonly severity: "error" | "warning";
  /** The problem, and what to do about it. For people: its wording may change in any version. */
  readonly message: string;
}

/** The part of a table's description that matters to locks. */
export interface TableFacts {
  /** `ACTIVE`, or another `TableStatus` of DynamoDB. */
  readonly status: string;
  /** The name of the partition key. */
  readonly partition: string | undefined;
  /** The name of the sort key; undefined if there is none. */
  readonly sort: string | undefined;
  readonly billing: "on-demand" | "provisioned";
  /** The regions of a global table's replicas. */
  readonly replicas: readonly string[];
  /** The consistency between a global table's replicas; undefined for other tables. */
  readonly consistency: "eventual" | "strong" | undefined;
}

/** Whether the leases of many locks can be renewed together. Nothing is wrong where they cannot be. */
export interface BatchReport {
  readonly usable: boolean;
  /** Where they cannot be: what that costs, and what to do about it. For people: its wording may change in any version. */
  readonly advice: string | undefined;
}

/** The result of `check()`. */
export interface TableReport {
  readonly tableName: string;
  /** Whether locks work: no problem is an `error`. */
  readonly usable: boolean;
  /** Errors before warnings. */
  readonly problems: readonly TableProblem[];
  /** Undefined if the table does not exist, or the credentials may not describe it. */
  readonly table: TableFacts | undefined;
  /** The state of DynamoDB's TTL feature and the attribute it reads; undefined if the credentials may not describe it. */
  readonly ttl: { readonly status: string; readonly attribute: string | undefined } | undefined;
  /** Whether renewals can go together, up to 25 in a request. Undefined if the table does not exist. */
  readonly batches: BatchReport | undefined;
  /**
   * What these credentials may do. `unknown`: the request was refused for another reason than a permission. Without a
   * sort key in the options there is no `Query`.
   */
  readonly permissions: Readonly<Partial<Record<TableAction, "allowed" | "refused" | "unknown">>>;
}
