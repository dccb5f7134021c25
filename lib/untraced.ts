/** Calls a function so that no spans are made of the requests that it sends. */
export type Untraced = <Result>(send: () => Result) => Result;

/** Where it is: all copies of this library in a process find it there, also where a bundle has one of its own. */
const UNTRACED = Symbol.for("dynamutex.untraced");

/** Sends a request that belongs to no caller's trace: a poll or a renewal. */
export const untraced: Untraced = (send) => {
  const given: Untraced | undefined = Reflect.get(globalThis, UNTRACED);
  return given === undefined ? send() : given(send);
};

/** Says how that is done; undefined: not at all. */
export function setUntraced(given: Untraced | undefined): void {
  Object.defineProperty(globalThis, UNTRACED, { configurable: true, value: given });
}
