import { describe, expect, it } from "@jest/globals";
import * as z from "zod/mini";
import { duration, exactly, objectOf, optionsCheck } from "../../lib/options/check.js";
import type { OptionsCheck } from "../../lib/options/options-check.js";

interface Options {
  readonly waitMs?: number | undefined;
  readonly mode?: "a" | "b" | undefined;
}

const mode = () => z.optional(z.literal(["a", "b"]));

/** `npm run check` compiles this file: each line below an expectation has to be refused. */
describe("the types of options and their schemas", () => {
  it("go together if they say the same", () => {
    const check: OptionsCheck<Options> = optionsCheck(["f()"], () => ({
      waitMs: z.optional(duration(1)),
      mode: mode(),
    }));
    expect(check({ waitMs: 5 })).toEqual({ waitMs: 5 });
  });

  it("are refused by the compiler if the schema accepts less", () => {
    // @ts-expect-error: a waitMs that is undefined is refused
    const check: OptionsCheck<Options> = optionsCheck(["f()"], () => ({ waitMs: duration(1), mode: mode() }));
    // @ts-expect-error: the mode "b" is refused
    const shape = exactly<Options>()({ waitMs: z.optional(duration(1)), mode: z.optional(z.literal("a")) });
    expect(() => check({ waitMs: undefined })).toThrow("waitMs");
    expect(z.safeParse(objectOf(shape), { mode: "b" }).success).toBe(false);
  });

  it("are refused by the compiler if the schema accepts more, leaves an option out or has one more", () => {
    // @ts-expect-error: a string is accepted
    const accepts = exactly<Options>()({ waitMs: z.optional(z.string()), mode: mode() });
    // @ts-expect-error: there is no mode
    const leaves = exactly<Options>()({ waitMs: z.optional(duration(1)) });
    // @ts-expect-error: there is a size
    const adds = exactly<Options>()({ waitMs: z.optional(duration(1)), mode: mode(), size: z.number() });
    expect([accepts, leaves, adds].map((shape) => Object.keys(shape).length)).toEqual([2, 1, 3]);
  });
});
