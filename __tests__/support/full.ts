/** Whether these are the tests of `npm run test:full`, which generate more, and try the same on more tables. */
export const IS_FULL = process.env.FULL_TESTS === "full";
