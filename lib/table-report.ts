/** The IAM actions, less their `dynamodb:`, that `check()` tries. */
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

/** Something about a table that locks cannot work with, or not as well as they could. */
export interface TableProblem {
  /**
   * `missing`: there is no such table. `status`: it cannot be used at present. `keys`: its key is not what the options say.
   * `permission`: an action is refused. `ttl`: DynamoDB removes no rows of dead holders. `billing`: its capacity is
   * limited. `replicas`: it is a global table. `request`: it refuses a request for another reason.
   */
  readonly code: "missing" | "status" | "keys" | "permission" | "ttl" | "billing" | "replicas" | "request";
  /** `error`: no lock can be taken. `warning`: locks work, and the message says what does not. */
  readonly severity: "error" | "warning";
  /** What is the matter, and what to do about it. For people: it may change from version to version. */
  readonly message: string;
}

/** What `DescribeTable` says, as far as it matters to locks. */
export interface TableFacts {
  /** `ACTIVE`, or what keeps it from being used. */
  readonly status: string;
  /** The attribute that is the partition key. */
  readonly partition: string | undefined;
  /** The attribute that is the sort key; undefined where there is none. */
  readonly sort: string | undefined;
  readonly billing: "on-demand" | "provisioned";
  /** The other regions that this table has replicas in. */
  readonly replicas: readonly string[];
  /** How a global table's replicas agree; undefined where there are none. */
  readonly consistency: "eventual" | "strong" | undefined;
}

/** What `check()` found out about a table. */
export interface TableReport {
  readonly tableName: string;
  /** Whether locks can be taken: no problem is an `error`. */
  readonly usable: boolean;
  /** Errors before warnings. */
  readonly problems: readonly TableProblem[];
  /** Undefined where there is no table, or it may not be described. */
  readonly table: TableFacts | undefined;
  /** The state of DynamoDB's TTL feature, and the attribute that it reads; undefined where that may not be described. */
  readonly ttl: { readonly status: string; readonly attribute: string | undefined } | undefined;
  /** What these credentials may do; `unknown` where the table gave another answer. An action that needs a sort key is left out where there is none. */
  readonly permissions: Readonly<Partial<Record<TableAction, "allowed" | "refused" | "unknown">>>;
}
