import { GetItemCommand, QueryCommand } from "@aws-sdk/client-dynamodb";
import { expect, test } from "@jest/globals";
import type { Host } from "../support/host-process.js";
import { startLockHost } from "../support/lock-host.js";
import { createTestTable, testClient, testEndpoint } from "../support/table.js";
import type { CandidateConfig, CandidateMessage } from "./hosts/candidate.js";
import type { ObserverConfig, ObserverMessage } from "./hosts/observer.js";

const NAME = "leader";
const KILLS = 5;
/** Renewals in quick succession: a leader that gets no processor for a moment goes on leading. */
const MUTEX = { ttlMs: 1_500, renewEveryMs: 200, poll: { minMs: 50, maxMs: 200 } };
const ENOUGH_LINES = 3;

const client = testClient();

test("of three processes one leads at any time, another within a lease and a poll of its death, and all see who", async () => {
  const TableName = await createTestTable();
  const candidates: Host<CandidateMessage>[] = [];
  const start = (): void => {
    const config = { tableName: TableName, name: NAME, owner: `candidate-${candidates.length}`, mutex: MUTEX };
    const program = new URL("./hosts/candidate.js", import.meta.url);
    candidates.push(startLockHost(program, { endpoint: testEndpoint(), config: config satisfies CandidateConfig }));
  };
  const all = <Kind extends CandidateMessage["kind"]>(kind: Kind) =>
    candidates.flatMap(({ messages }) => messages).filter((message): message is Of<Kind> => message.kind === kind);
  const observing: ObserverConfig = { tableName: TableName, name: NAME, pollMs: 100 };
  const program = new URL("./hosts/observer.js", import.meta.url);
  await using observer = startLockHost<ObserverMessage>(program, { endpoint: testEndpoint(), config: observing });
  await observer.message(({ kind }) => kind === "seen");
  try {
    for (let count = 0; count < 3; count += 1) start();
    const awaited: string[] = [];
    let ends = 0;
    for (let kills = 0; kills <= KILLS; kills += 1) {
      const leader = await nextLeader(candidates, awaited);
      const { uuid, acquired } = leader;
      awaited.push(uuid);
      await observer.message((seen) => seen.uuid === uuid);
      // A poll is short against a lease: the next one leads long before a second lease would be over.
      if (kills > 0) expect((acquired - ends) / MUTEX.ttlMs).toBeLessThan(1);
      if (kills === KILLS) break;
      leader.host.kill("SIGKILL");
      await leader.host.exit;
      ends = await leaseEnd(TableName);
      start();
    }
    for (const candidate of candidates) candidate.kill("SIGKILL");
    await Promise.all(candidates.map(({ exit }) => exit));

    expect(candidates.map(({ stderr }) => stderr).join("")).not.toMatch(/Error/);
    expect(all("conflict")).toEqual([]);
    const led = all("leading").sort((one, other) => one.acquired - other.acquired);
    const leaders = led.map(({ uuid }) => uuid);
    // Each leader has written in one go: none has written after the next one began.
    const writers = (await lines(TableName)).filter((uuid, index, before) => uuid !== before[index - 1]);
    expect(writers).toEqual(leaders.filter((uuid) => writers.includes(uuid)));
    expect(writers).toEqual(expect.arrayContaining(awaited));
    // A process that is slow may take the lock and give it back at once: it has not led.
    const seen = observer.messages.flatMap(({ uuid }) => (uuid !== undefined && leaders.includes(uuid) ? uuid : []));
    expect(seen).toEqual(leaders.filter((uuid) => seen.includes(uuid)));
    expect(seen).toEqual(expect.arrayContaining(awaited));
  } finally {
    for (const candidate of candidates) candidate.kill("SIGKILL");
    await Promise.all(candidates.map(({ exit }) => exit));
  }
});

type Of<Kind> = Extract<CandidateMessage, { readonly kind: Kind }>;

interface Leader extends Of<"leading"> {
  readonly host: Host<CandidateMessage>;
}

/** A leader that was not awaited before, once it has written. */
async function nextLeader(candidates: readonly Host<CandidateMessage>[], before: readonly string[]): Promise<Leader> {
  const running = candidates.filter((host) => host.running);
  return await Promise.any(
    running.map(async (host) => {
      const isNew = ({ uuid }: CandidateMessage): boolean => !before.includes(uuid);
      let written = 0;
      const { uuid } = await host.message(
        (message) => isNew(message) && message.kind === "wrote" && ++written >= ENOUGH_LINES,
      );
      const began = host.messages.find((message): message is Of<"leading"> => message.uuid === uuid);
      return { ...(began as Of<"leading">), host };
    }),
  );
}

/** When the lease on the lock's row ends, on the table's clock. */
async function leaseEnd(TableName: string): Promise<number> {
  const Key = { name: { S: NAME }, sort: { S: "lock" } };
  const { Item } = await client.send(new GetItemCommand({ TableName, Key, ConsistentRead: true }));
  return Number(Item?.expires?.N);
}

/** Who has written each line of the log. */
async function lines(TableName: string): Promise<readonly string[]> {
  const { Items = [], LastEvaluatedKey } = await client.send(
    new QueryCommand({
      TableName,
      KeyConditionExpression: "#n = :n AND begins_with(sort, :line)",
      ExpressionAttributeNames: { "#n": "name" },
      ExpressionAttributeValues: { ":n": { S: `${NAME}-log` }, ":line": { S: "line#" } },
      ConsistentRead: true,
    }),
  );
  expect(LastEvaluatedKey).toBeUndefined();
  return Items.map(({ uuid }) => uuid?.S ?? "");
}
