/** Numbers from 0 to 1. */
export type Random = () => number;

/**
 * Numbers that depend on nothing but the seed and how often they were asked for. With a name, a stream of its own: what
 * one part of a run draws does not shift what another draws.
 */
export function seededRandom(seed: number, ...name: readonly (string | number)[]): Random {
  return randomFrom(name.length === 0 ? seed >>> 0 : hash(`${seed}/${name.join("/")}`) >>> 0);
}

/** The same for many streams of one name, each with a number at its end: `seededRandom(seed, ...name, number)`. */
export function seededStreams(seed: number, ...name: readonly (string | number)[]): (number: number) => Random {
  const begun = hash(`${seed}/${name.join("/")}/`);
  return (number) => randomFrom(hash(String(number), begun) >>> 0);
}

/** mulberry32: small, and good enough to choose faults. */
function randomFrom(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** FNV-1a, of a text that goes on where another has ended. */
function hash(text: string, before = 0x811c9dc5): number {
  let state = before;
  for (let index = 0; index < text.length; index += 1) state = Math.imul(state ^ text.charCodeAt(index), 0x01000193);
  return state;
}
