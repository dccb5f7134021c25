/**
 * Checks options and returns them unchanged. It has a file of its own, because declarations that users see refer to it,
 * and what they refer to must not show zod, which they need not have installed.
 *
 * @throws {@link LockConfigError} naming the first option that cannot work.
 */
export type OptionsCheck<Options> = (options: Options) => Options;
