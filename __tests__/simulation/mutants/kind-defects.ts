import type { Defect, Patch } from "./defects.js";

const ACQUISITION = "lib/taking/acquisition.js";
const EXIT = "lib/holding/exit.js";
const EXCLUSIVE = "lib/kinds/exclusive.js";
const SEMAPHORE = "lib/kinds/semaphore.js";
const SHARED = "lib/kinds/shared.js";
const FLAGS = "lib/kinds/shared-mutex-rows.js";
const TOKEN = "lib/holding/hand-off-token.js";
const RESUME = "lib/holding/resume.js";
const RULES = "lib/protocol/rules.js";
const SECTIONS = "lib/queues/sections.js";

const LOOKS_FOR_WRITER = /untilNoWriter\(session, resource, wait\)/g;
const MAY_LAPSE = /mayLapse: resource\.kind\.rowDecides/g;

/** A row is looked at, and renewed before the reply comes. */
const JUDGED_BY_REPLY: Patch = {
  file: "lib/taking/rows.js",
  find: /const known = (knownNow\(.*\));\s+return \{ \.\.\.\(await session\.store\.query\(query, signal\)\), \.\.\.known \};/g,
  replace:
    "const sentAt = session.clock.atMost(); const page = await session.store.query(query, signal);\n" +
    "return { ...page, ...$1, sentAt };",
};

const REMOVED_BY_UUID: Patch = {
  file: "lib/taking/rows.js",
  find: /const write = (\{ kind: "remove", at: \{ name, sort \}, seenUuid, seenExpires \});/g,
  replace:
    "const write = seenUuid === undefined ? $1\n" +
    ': { kind: "vacate", at: { name, sort }, uuid: seenUuid, leaves: { kind: "free" }, remembers: "nothing" };',
};

/** Defects of semaphores, shared mutexes and hand-offs. What each breaks is said in lib/kinds/ and lib/taking/. */
export const KIND_DEFECTS: readonly Defect[] = [
  {
    name: "a permit is taken whatever its row says",
    patches: [
      {
        file: RULES,
        find: /let takes = TAKES_EXPIRED;/g,
        replace: 'let takes = write.at.sort.startsWith("semaphore#") ? takesOver(all()) : TAKES_EXPIRED;',
      },
    ],
  },
  {
    name: "a caller takes a permit beyond its number",
    patches: [{ file: SEMAPHORE, find: /Array\.from\(\{ length: end \}/g, replace: "Array.from({ length: end + 1 }" }],
  },
  {
    name: "a reader is let in while a writer has its row",
    patches: [{ file: SHARED, find: LOOKS_FOR_WRITER, replace: "Promise.resolve(undefined)" }],
  },
  {
    name: "a reader looks for a writer before its own row is there",
    patches: [
      {
        file: SHARED,
        find: /const result = await takeRow\(session, claimed, .*\);/g,
        replace: "const early = await lookForWriter(session, resource, wait);\n$&",
      },
      { file: SHARED, find: LOOKS_FOR_WRITER, replace: "Promise.resolve(early)" },
    ],
  },
  {
    name: "a reader looks for a writer by a read that may be stale",
    patches: [
      {
        file: FLAGS,
        find: /readWriter\(session, resource, wait, \{ isConsistent: true \}\)/g,
        replace: "readWriter(session, resource, wait, { isConsistent: false })",
      },
    ],
  },
  {
    name: "a reader judges a writer by what is known when the reply comes",
    patches: [
      {
        file: FLAGS,
        find: /return \{ known: before, row: (await session\.store\.read\(.*\)) \};/g,
        replace:
          "const row = $1; return { known: { ...before, ...knownNow(session, resource.settings.takeover) }, row };",
      },
    ],
  },
  {
    name: "a writer takes a reader for dead by the latest time it may be",
    patches: [
      {
        file: FLAGS,
        find: /!isDead\(session, row, page\)/g,
        replace: "!isDead(session, row, { ...page, earliest: session.clock.wall()?.latest ?? 1 })",
      },
    ],
  },
  {
    name: "a writer looks for readers by a query that may be stale",
    patches: [
      {
        file: FLAGS,
        find: /limit: READERS_LIMIT, consistent: true/g,
        replace: "limit: READERS_LIMIT, consistent: false",
      },
    ],
  },
  {
    name: "a writer does not look for readers",
    patches: [
      {
        file: EXCLUSIVE,
        find: /await lookForReaders\(this\.session, resource, wait\)/g,
        replace: "{ found: false }",
      },
    ],
  },
  {
    name: "a dead reader is removed, renewed or not",
    patches: [JUDGED_BY_REPLY, REMOVED_BY_UUID],
  },
  {
    name: "a renewal mends the lapse of a writer that waits",
    patches: [
      { file: SECTIONS, find: MAY_LAPSE, replace: "mayLapse: true" },
      { file: EXCLUSIVE, find: /lease\.watch\(WAITING_WRITER\);/g, replace: "" },
      { file: EXCLUSIVE, find: /while \(lease\.held\)/g, replace: "while (true)" },
      { file: EXCLUSIVE, find: /if \(!lease\.held\)/g, replace: "if (false)" },
    ],
  },
  {
    name: "dead readers are let be, and a renewal mends their lapse",
    patches: [
      { file: FLAGS, find: /return \{ found \};/g, replace: "return { found: false };" },
      { file: FLAGS, find: /await Promise\.all\(page\.rows\.map\(\(row\) => remove\(.*\)\)\);/g, replace: "" },
      { file: SECTIONS, find: MAY_LAPSE, replace: "mayLapse: true" },
    ],
  },
  {
    name: "a writer that gives up keeps its row",
    patches: [
      {
        file: FLAGS,
        find: /let isGranted = false;/g,
        replace: "let isGranted = true;",
      },
    ],
  },
  {
    name: "sections join others without a look for a writer",
    patches: [{ file: SHARED, find: /now - own\.lookedAt < own\.resource\.settings\.handOverMs/g, replace: "true" }],
  },
  {
    name: "sections join others although a writer was seen",
    patches: [{ file: SHARED, find: /own\.isClosed = true;/g, replace: "return undefined;" }],
  },
  {
    name: "the first section that ends takes the row from those that share it",
    patches: [
      { file: SECTIONS, find: /&& !lease\.endSection\(section\)/g, replace: "&& (lease.endSection(section), false)" },
    ],
  },
  {
    name: "a token is resumed twice",
    patches: [
      {
        file: RULES,
        find: /fenced \? IS_MINE_AND_FENCED : IS_MINE,/g,
        replace: 'fenced ? all(IS_SOMEBODYS, isNumber("fence")) : IS_SOMEBODYS,',
      },
    ],
  },
  {
    name: "a token is the uuid that everybody sees",
    patches: [{ file: TOKEN, find: /return createHash\(.*\);/g, replace: "return secret;" }],
  },
  {
    name: "a lock that is handed off keeps the length of its lease",
    patches: [{ file: RULES, find: /(update\(\{ uuid, expires), ttlMs(, owner, handOff \})/g, replace: "$1$2" }],
  },
  {
    name: "a late copy of the take is handed off once more",
    patches: [
      { file: RULES, find: /if \(after === undefined\)/g, replace: "if (true)" },
      { file: EXIT, find: /row\.guard === undefined \? await row\.renew\(trying\) : /g, replace: "" },
    ],
  },
  {
    name: "a lock is handed off under its own uuid",
    patches: [
      {
        file: ACQUISITION,
        find: /const \{ uuid \} = handOff;/g,
        replace: "const uuid = this.#uuid;",
      },
    ],
  },
  {
    name: "a resumed lock draws no token",
    patches: [
      {
        file: RESUME,
        find: /fencing: fenced \} = settings/g,
        replace: "fencing: notFenced } = settings, fenced = false",
      },
      { file: RESUME, find: /outcome\.kind === "applied" \? outcome\.drawn : row\?\.fence/g, replace: "row?.fence" },
    ],
  },
  {
    name: "what an abandoned resumption takes is not given back",
    patches: [{ file: RESUME, find: /session\.detach\(removeWhenItArrives\(.*\)\);/g, replace: "" }],
  },
];
