import type { Switches } from "./switch.js";

export const RESUME_RULES = {
  /** A resume counts as applied only if the row that refuses it has its new uuid. */
  asksForOwn: true,
  /** It asks for the uuid of the token, and not for whichever the row has. */
  namesToken: true,
  /** It goes on with a uuid of its own. */
  hasFreshUuid: true,
  /** What is given up begins no section, whatever the table answers. */
  givesUpForGood: true,
  /** What is given up is looked for, and released. */
  looksForGivenUp: true,
  /** Its release leaves the rest of the hold. */
  leavesHold: true,
  /** Its process takes it over at once only if the hold is over. */
  abandonsAfterHold: true,
  /** A hand-off lasts for as long as the hold, at least. */
  lastsForHold: true,
  /** A hand-off without an answer is released under both uuids. */
  releasesBoth: true,
};

export type ResumeRules = typeof RESUME_RULES;

export interface ResumeLimits {
  /** How often each host gets the token, and how often it takes the lock. */
  readonly resumes: readonly number[];
  readonly takes: readonly number[];
  readonly hasHold: boolean;
  readonly lateCopies: number;
  readonly crashes: number;
}

export const RESUMES = {
  resumes: { resumes: [2, 1], takes: [1, 0], hasHold: true, lateCopies: 0, crashes: 1 },
  "late copies of resumes": { resumes: [1, 1], takes: [0, 1], hasHold: false, lateCopies: 1, crashes: 0 },
} satisfies Record<string, ResumeLimits>;

export const LARGE_RESUMES: Readonly<Record<keyof typeof RESUMES, ResumeLimits>> = {
  resumes: { ...RESUMES.resumes, takes: [1, 1] },
  "late copies of resumes": { ...RESUMES["late copies of resumes"], hasHold: true, lateCopies: 2, crashes: 1 },
};

export type ResumeInvariant =
  | "one holder"
  | "a token is resumed once"
  | "what is given up is never held"
  | "nothing is left behind"
  | "a hold lasts";

export const RESUME_SWITCHES: Switches<keyof typeof RESUMES, ResumeLimits, ResumeRules, ResumeInvariant> = {
  resumes: {
    "a resume that may have been applied counts": {
      takesOut: ["protocol#hand-off 4", "hand-off#what-is-promised: A token is used once"],
      breaks: "a token is resumed once",
      off: { asksForOwn: false },
    },
    "a resume goes on from any uuid": {
      takesOut: ["protocol#hand-off 2", "hand-off#what-is-promised: One holder"],
      more: { resumes: [1, 0], takes: [0, 1], hasHold: false },
      breaks: "one holder",
      off: { namesToken: false },
    },
    "a resume goes on with the uuid of the token": {
      takesOut: ["protocol#hand-off", "hand-off#what-is-promised: A token is used once"],
      breaks: "a token is resumed once",
      off: { hasFreshUuid: false },
    },
    "a resume that is given up begins when it is answered": {
      takesOut: ["protocol#hand-off 4"],
      breaks: "what is given up is never held",
      off: { givesUpForGood: false },
    },
    "a resume that is given up is not looked for": {
      takesOut: ["protocol#hand-off 4", "hand-off#what-is-promised: A hand-off that fails"],
      breaks: "nothing is left behind",
      off: { looksForGivenUp: false },
    },
    "a resume that is given up leaves no hold": {
      takesOut: ["protocol#hand-off 4", "hand-off#what-is-promised: A hand-off that fails"],
      breaks: "a hold lasts",
      off: { leavesHold: false },
    },
    "a resume that is given up is taken over in its hold": {
      takesOut: ["protocol#hand-off 4"],
      breaks: "a hold lasts",
      off: { abandonsAfterHold: false },
    },
    "a hand-off is shorter than its hold": {
      takesOut: ["protocol#the-rows-states: handed off"],
      breaks: "a hold lasts",
      off: { lastsForHold: false },
    },
    "a hand-off without an answer is released under its first uuid": {
      takesOut: ["protocol#hand-off 1", "hand-off#what-is-promised: A hand-off that fails"],
      breaks: "nothing is left behind",
      off: { releasesBoth: false },
    },
  },
};
