import {
  acquisition,
  exclusive,
  exit,
  flags,
  resume,
  rows,
  rules,
  sections,
  semaphore,
  shared,
  token,
} from "./files.js";
import type { Defects, Patch } from "./patch.js";
import { JUDGED_BY_REPLY } from "./queue-defects.js";

const LOOKS_FOR_WRITER = /untilNoWriter\(session, resource, wait\)/g;
const MAY_LAPSE = /mayLapse: resource\.kind\.rowDecides/g;

/** A row is removed, renewed or not since it was looked at. */
const REMOVED_BY_UUID: Patch = rows(
  /const write = (\{ kind: "remove", at: \{ name, sort \}, seenUuid, seenExpires \});/g,
  "const write = seenUuid === undefined ? $1\n" +
    ': { kind: "vacate", at: { name, sort }, uuid: seenUuid, leaves: { kind: "free" }, remembers: "nothing" };',
);

/** Defects of semaphores, shared mutexes and hand-offs. What each breaks is said in lib/kinds/ and lib/taking/. */
export const KIND_DEFECTS: Defects = {
  "a permit is taken whatever its row says": [
    rules(
      /let takes = TAKES_EXPIRED;/g,
      'let takes = write.at.sort.startsWith("semaphore#") ? takesOver(all()) : TAKES_EXPIRED;',
    ),
  ],
  "a caller takes a permit beyond its number": [
    semaphore(/Array\.from\(\{ length: end \}/g, "Array.from({ length: end + 1 }"),
  ],
  "a reader is let in while a writer has its row": [shared(LOOKS_FOR_WRITER, "Promise.resolve(undefined)")],
  "a reader looks for a writer before its own row is there": [
    shared(
      /const result = await takeRow\(session, claimed, .*\);/g,
      "const early = await lookForWriter(session, resource, wait);\n$&",
    ),
    shared(LOOKS_FOR_WRITER, "Promise.resolve(early)"),
  ],
  "a reader looks for a writer by a read that may be stale": [
    flags(
      /readWriter\(session, resource, wait, \{ isConsistent: true \}\)/g,
      "readWriter(session, resource, wait, { isConsistent: false })",
    ),
  ],
  "a reader judges a writer by what is known when the reply comes": [
    flags(
      /return \{ known: before, row: (await session\.store\.read\(.*\)) \};/g,
      "const row = $1; return { known: { ...before, ...knownNow(session, resource.settings.takeover) }, row };",
    ),
  ],
  "a writer takes a reader for dead by the latest time it may be": [
    flags(
      /!isDead\(wait, row, page\)/g,
      "!isDead(session, row, { ...page, earliest: session.clock.wall()?.latest ?? 1 })",
    ),
  ],
  "a writer looks for readers by a query that may be stale": [
    flags(/limit: READERS_LIMIT, consistent: true/g, "limit: READERS_LIMIT, consistent: false"),
  ],
  "a writer does not look for readers": [
    exclusive(/await lookForReaders\(this\.session, resource, wait\)/g, "{ found: false }"),
  ],
  "a dead reader is removed, renewed or not": [JUDGED_BY_REPLY, REMOVED_BY_UUID],
  "a renewal mends the lapse of a writer that waits": [
    sections(MAY_LAPSE, "mayLapse: true"),
    exclusive(/lease\.watch\(WAITING_WRITER\);/g, ""),
    exclusive(/while \(lease\.held\)/g, "while (true)"),
    exclusive(/if \(!lease\.held\)/g, "if (false)"),
  ],
  "dead readers are let be, and a renewal mends their lapse": [
    flags(/return \{ found \};/g, "return { found: false };"),
    flags(/await Promise\.all\(page\.rows\.map\(\(row\) => remove\(.*\)\)\);/g, ""),
    sections(MAY_LAPSE, "mayLapse: true"),
  ],
  "a writer that gives up keeps its row": [flags(/let isGranted = false;/g, "let isGranted = true;")],
  "sections join others without a look for a writer": [
    shared(/now - own\.lookedAt < own\.resource\.settings\.handOverMs/g, "true"),
  ],
  "sections join others although a writer was seen": [shared(/own\.isClosed = true;/g, "return undefined;")],
  "the first section that ends takes the row from those that share it": [
    sections(/&& !lease\.endSection\(section\)/g, "&& (lease.endSection(section), false)"),
  ],
  "a token is resumed twice": [
    rules(/fenced \? IS_MINE_AND_FENCED : IS_MINE,/g, 'fenced ? all(IS_SOMEBODYS, isNumber("fence")) : IS_SOMEBODYS,'),
  ],
  "a token is the uuid that everybody sees": [token(/return createHash\(.*\);/g, "return secret;")],
  "a lock that is handed off keeps the length of its lease": [
    rules(/(update\(\{ uuid, expires), ttlMs(, owner, handOff \})/g, "$1$2"),
  ],
  "a late copy of the take is handed off once more": [
    rules(/if \(after === undefined\)/g, "if (true)"),
    exit(/row\.guard === undefined \? await row\.renew\(trying\) : /g, ""),
  ],
  "a lock is handed off under its own uuid": [acquisition(/const \{ uuid \} = handOff;/g, "const uuid = this.#uuid;")],
  "a resumed lock draws no token": [
    resume(/fencing: fenced \} = settings/g, "fencing: notFenced } = settings, fenced = false"),
    resume(/outcome\.kind === "applied" \? outcome\.drawn : row\?\.fence/g, "row?.fence"),
  ],
  "what an abandoned resumption takes is not given back": [
    resume(/session\.detach\(removeWhenItArrives\(.*\)\);/g, ""),
  ],
};
