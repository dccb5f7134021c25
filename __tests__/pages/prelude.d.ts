/**
 * What the examples of the documentation and of doc comments leave to the reader: an example that says neither where
 * something comes from nor runs may use these. Whole programs, which are marked as running, are compiled without them.
 */
import type { DynamoDBClient, TransactWriteItem } from "@aws-sdk/client-dynamodb";
import type * as D from "dynamutex";
import type { TestTable } from "dynamutex/testing";

declare global {
  const table: TestTable;
  const other: D.LockTable;
  const locks: D.LockTable;
  const mutex: D.Mutex;
  const semaphore: D.Semaphore;
  const catalogue: D.SharedMutex;
  const election: D.Election;
  const lock: D.TransferableLock;
  const token: string;
  const message: string;
  const client: DynamoDBClient;
  const items: readonly TransactWriteItem[];
  const debit: TransactWriteItem;
  const credit: TransactWriteItem;
  const lockTable: { grant(grantee: unknown, ...actions: readonly string[]): unknown };
  const TableName: string;
  const Key: Record<string, { S: string }>;
  const customer: string;
  const tenant: string;
  const customers: readonly string[];
  const request: Request;
  const parts: readonly { readonly number: number }[];
  // biome-ignore lint/suspicious/noExplicitAny: they stand for whatever the reader has.
  const documentClient: any, TransactWriteCommand: any, queue: any, order: any;
  function charge(...args: unknown[]): Promise<void>;
  function build(part: unknown, signal: AbortSignal): Promise<void>;
  function cron(schedule: string, job: () => Promise<void>): void;
  function work(...args: unknown[]): Promise<void>;
  function callApi(...args: unknown[]): Promise<void>;
  function respond(status: number): void;
  function refresh(): Promise<void>;
  function fetchRates(signal: AbortSignal): Promise<Record<string, number>>;
  function fetchCustomer(...args: unknown[]): Promise<unknown>;
  function buildReport(...args: unknown[]): Promise<void>;
  function sendInvoices(...args: unknown[]): Promise<void>;
  function sendReport(...args: unknown[]): Promise<void>;
  function serve(signal: AbortSignal): Promise<void>;
  function transfer(...args: unknown[]): Promise<void>;
  function ship(...args: unknown[]): Promise<void>;
  function readAll(...args: unknown[]): Promise<void>;
  function rebuild(...args: unknown[]): Promise<void>;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  function compute(...args: unknown[]): any;
}
