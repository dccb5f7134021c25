import { error, type Fault, rewriteReply } from "./faults.js";
import { errorReply, withBody } from "./reply.js";

/** Another Region has written the same row. The table may have applied the write all the same: nobody says. */
export const replicatedWriteConflict = ({ applied }: { readonly applied: boolean }): Fault => {
  const conflict = [
    "ReplicatedWriteConflictException",
    "The item was modified by a request in another Region",
  ] as const;
  const fault = applied ? rewriteReply(() => errorReply(400, ...conflict)) : error(...conflict);
  return { ...fault, kind: "replicatedWriteConflict" };
};

/** What such a table does not do. */
export const unsupported = (what: string): Fault => ({
  ...error("ValidationException", `${what} are not supported on a table with multi-Region strong consistency`),
  kind: "unsupported",
});

/** The description of a table as one of several Regions. */
export const describedAsSeveralRegions = (): Fault =>
  rewriteReply((reply) => {
    const more = {
      MultiRegionConsistency: "STRONG",
      Replicas: [{ RegionName: "us-east-2" }, { RegionName: "us-west-2" }],
    };
    const { Table, ...body } = reply.body as { readonly Table?: object };
    return Table === undefined ? reply : withBody(reply, { ...body, Table: { ...Table, ...more } });
  }, "severalRegions");
