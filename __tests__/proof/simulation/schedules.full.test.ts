import { describe, expect, it } from "@jest/globals";
import { explore, parseStart } from "./explore.js";
import { FIGURES } from "./figures.js";
import { dynamutex } from "./protocol.js";

/**
 * The same schedules for every change; long runs look for new ones. `SIM_SEED=…` replays what a failure printed, or
 * plays others; `SIM_RUNS=…` makes it longer.
 */
const start = parseStart(process.env.SIM_SEED ?? "1");
const runs = Number(process.env.SIM_RUNS ?? 1_000);

/** What a run of the default length must have been through, or it proves little. */
const EXPECTED = [
  "takeovers: expired",
  "takeovers: unchanged",
  "losses: expired",
  "losses: max-hold",
  "own writes recognised",
  "ambiguous writes: take",
  "ambiguous writes: renew",
  "ambiguous writes: release",
  "late duplicates applied: take",
  "rows that a late copy brought back",
  "renew: applied",
  "reissue: applied",
  "fencing tokens",
  "sections that got the lease of another",
  "leases passed on after a guard",
  "releases that showed a mark",
  "releases after which others were let in",
  "takes that carried a mark on",
  "late writes of a section that was followed: refused",
  "guarded writes",
  "ticks",
  "ticks recorded",
  "ticks recorded after other attempts",
  "ticks until success: gave-up",
  "elections over",
  "elections over after several terms",
  "elections resigned by their leader",
  "elections resigned by a candidate",
  "terms that failed",
  "results shared",
  "leases extended",
  "sets extended",
  "leases extended that are not renewed by themselves",
  "locks held past their section",
  "locks taken away by force",
  "losses: forced",
  "sets taken",
  "locks of several permits taken",
  "permits taken by somebody who knows of fewer",
  "writeAll: refused",
  "waits against one busy host",
  "ambiguous writes: writeAll",
  "late duplicates applied: writeAll",
  "locks of sets given back alone",
  "releases of sets that told of a loss",
  "waits that were aborted",
  "waits that timed out",
  "mishaps: crash",
  "mishaps: freeze",
  "mishaps: suspend",
  "mishaps: step",
  "mishaps: close",
  "calls that a close ended",
  "closes without a loss",
  "closes that revoked sections",
  "sections that outlived the close",
  "sections that awaited a close of their own table",
  "releases given up",
  "stale reads",
  "turns in a queue",
  "turns without a ticket",
  "turns with others behind",
  "tickets lost: expired",
  "place sweep: applied",
  "ambiguous writes: place take",
  "ambiguous writes: place renew",
  "ambiguous writes: place leave",
  "late duplicates applied: place take",
  "wrong dates: ahead",
  "wrong dates: behind",
  "clock: contradicted",
  "first reads for the time",
  "reads for the time after a silence",
  "requests that waited for a slot: renewal",
  "requests that waited for a slot: take",
  "locks taken: permit",
  "locks taken: shared",
  "locks taken: exclusive",
  "ambiguous writes: permit take",
  "ambiguous writes: reader take",
  "ambiguous writes: writer take",
  "late duplicates applied: permit take",
  "late duplicates applied: reader take",
  "late duplicates applied: writer take",
  "permit reissue: applied",
  "permit force: applied",
  "reader force: applied",
  "writer force: applied",
  "reader remove: applied",
  "sections that joined others",
  "locks handed off",
  "hand-offs that told of a loss",
  "ambiguous writes: transfer",
  "locks resumed",
  "resumptions that were aborted",
  "tokens of no use: expired",
  "tokens of no use: stolen",
  "tokens of no use: deleted",
  "attacks: seen",
  "attacks: foreign",
  "attacks: edited",
  "attacks: old",
];

/** Schedules on which it, or a judge, was wrong once. */
const KEPT = [
  "20000031/877",
  "22000119/777",
  "22000362/85",
  "22000377/894",
  "23000099/119", // a candidate that stands again was no call that its process had under way
  "23000233/408", // a call whose time is nearly over sends nothing more, and its claim goes at its end
  "23000264/572", // a mark that is over before the release is answered keeps nobody back
  "23000490/560", // with a server an hour behind, a mark that is over is found again
  "24000058/138", // a try for a tick begins a turn of its own
  "24000102/747", // a look of several pages shows the row as it was at its first
  "24004398/210", // a row that was unlocked by force is watched anew
  "610000010/660", // a try behind a call of its process that has sent nothing yet
  "660000008/415", // a set of eleven names that gives its rows back two at a time
  "670000027/759", // a reader whose row was unlocked by force while its reply was lost
  "680000033/884", // two permits with a hold, of which one is given up
  "690000001/516", // a look for results that shows who has the row
  "690000021/915", // a mark whose writer hears of it when it has taken the row
  "778000002/665", // a release whose look has waited for a slot
  "995001003/654", // a lease that is extended by a process that was suspended
  "800000039/774", // a token that is no use to a process whose first answer is somebody else's
  "630000021/702", // new data that are refused while a renewal waits for them and the lock is unlocked
  "910000017/663", // a look for a copy in flight that stands in line behind calls whose requests hang
  "980000006/637", // a row that was unlocked by force while a renewal in flight has its release wait
  "990002010/481", // a try whose lease is lost as it is secured, just before its time is over
  "800000024/106", // a place that its callers leave while its look is under way admits nobody behind them
  "620859680/282", // a release that is answered late, while the next caller of its process stands back
  "620859686/197", // a caller of a process that knows of fewer permits than the one behind it
  "910000005/748", // a release that is lost at the end, and whose attempt waits for a poll of the sockets
  "920001006/921", // a take that is refused by its form, and whose process stands still before it reads that
  "54003/126", // a first try that begins after a freeze, in which the time of its call has passed
  "54022/577", // a claim that leaves at the moment at which a release shows that others wait
  "54045/850", // a claim that gets its slot by the release that shows that others wait
  "54052/904", // a try whose renewal is in flight when the last reader leaves
  "56069/608", // a flight whose look gets no slot
  "60047/281", // a claim that waits for a slot as a late release shows that others wait
  "63005/461", // a look for a claim whose lease is over, which gets no slot
  "63097/210", // a waiter that uses a look from before the take of another caller of its process
  "63017/886", // a set whose take came late, and whose reissue is answered late
  "68046/92", // a flight whose reissue after a late take is lost again and again, while its lease's end is in doubt
  "76107/644", // late copies of a take and of its reissue, when all that was theirs is over
  "77012/843", // a flight whose look for results is under way as a late release shows that others wait
  "80024/619", // a flight that looked before a claim of its own process was given back, and asks after it
  "88021/937", // short waits behind a call of their process that pauses after the last failure of an outage
  "94056/318", // a try for ticks of 3 s in an outage, which waits for the beginning of several
  "96002/986", // a holder that is throttled at once, when the answers before were slow
  "96051/193", // a reader that removes the row of a dead writer, and has no answer to that when its time is over
  "97048/291", // a try for ticks of some seconds, as 94056/318
  "98015/603", // a judge that looks at a suspended process, whose wall clock is then set back
  "100071/364", // a hand-off without an answer, of a process whose wall clock is set forward before its release
  "101037/53", // a release that gets no slot, long before the next turn of its process
  "102009/594", // a writer whose reader of the same process has just given way
  "120029/161", // a renewal after a slow take, which shows a mark before the section begins
  "125090/951", // a claim after a look at an own place that is lost before the claim is repeated
  "90042/483", // a reissue whose answer is heard late, before a release that gets no slot
  "67031/159", // a release that gets its slot when its section has long been told of its end
];

describe("the protocol on virtual time", () => {
  it.each(KEPT)("keeps its promises in the schedule SIM_SEED=%s", async (seed) => {
    const { runs: played } = await explore(dynamutex, parseStart(seed), 1);
    expect(played).toBe(1);
  });

  it(
    `keeps its promises in ${runs} schedules of faults from SIM_SEED=${start.seed}`,
    async () => {
      const { coverage } = await explore(dynamutex, start, runs);
      if (start.path !== undefined || runs < 1_000) return;
      expect(EXPECTED.filter((state) => coverage.of(state) === 0)).toEqual([]);
      expect(FIGURES.filter((figure) => coverage.sumOf(figure) === 0)).toEqual([]);
    },
    // What a busy machine needs for the default length, and as much for each further one.
    Math.max(1, runs / 1_000) * 600_000,
  );
});
