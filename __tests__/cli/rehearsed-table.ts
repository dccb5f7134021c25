import { ScanCommand } from "@aws-sdk/client-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { type Attributes, rowOf, type useScene } from "../support/scene.js";
import { testClient } from "../support/table.js";

type Scene = ReturnType<typeof useScene>;

/** All that is in the table. */
export async function rowsIn({ tableName }: Scene): Promise<readonly Attributes[]> {
  const { Items = [] } = await testClient().send(new ScanCommand({ TableName: tableName, ConsistentRead: true }));
  return Items.map((item) => unmarshall(item)).sort((one, other) => (`${one.name}` < `${other.name}` ? -1 : 1));
}

/** A table in use: a lock that is held, and an item of an application under a name that looks like the rehearsal's. */
export async function tableInUse(scene: Scene): Promise<readonly Attributes[]> {
  await scene.put(rowOf());
  await scene.put({ total: 7 }, "dynamutex#rehearsal#report");
  return await rowsIn(scene);
}
