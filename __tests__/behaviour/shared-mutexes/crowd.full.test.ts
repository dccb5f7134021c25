import { afterEach, expect, test } from "@jest/globals";
import { DistantHosts } from "../../support/distant-hosts.js";

let world = new DistantHosts();
afterEach(() => world.close());

/** How many sections each of six reading hosts, and each of two writing ones, ran in so long. */
async function sections({ fair }: { readonly fair: boolean }) {
  world = new DistantHosts();
  const mutexes = [{ fair, ttlMs: 3_000 }];
  const readers = Array.from({ length: 6 }, () => world.add({ side: "shared", callers: 3, sectionMs: 50, mutexes }));
  const writers = Array.from({ length: 2 }, () => world.add({ side: "exclusive", sectionMs: 50, mutexes }));
  await world.time.advance(10_000);
  return { readers: readers.map((host) => host.sections), writers: writers.map((host) => host.sections) };
}

test("writers are not starved by readers that ask all the time", async () => {
  const { readers, writers } = await sections({ fair: false });
  expect(Math.min(...readers)).toBeGreaterThan(0);
  // A writer that has put its flag is in as soon as the sections that run have ended, and those that join meanwhile.
  expect(Math.min(...writers)).toBeGreaterThan(5);
});

test("with `fair`, each side gets its turns in the order of asking: every caller as many, nearly", async () => {
  const { readers, writers } = await sections({ fair: true });
  const each = [...readers.map((count) => count / 3), ...writers];
  expect(Math.max(...each) - Math.min(...each)).toBeLessThan(3);
  // Sections of 50 ms, of both sides in turn, with some hand-overs in between.
  expect(Math.min(...each)).toBeGreaterThan(15);
});

/** How many requests each section of a crowd of hosts that write costs. */
async function requestsOfWriters(side?: "exclusive"): Promise<number> {
  world = new DistantHosts();
  const mutexes = [{ fair: true, ttlMs: 10_000 }];
  const hosts = Array.from({ length: 40 }, () =>
    world.add({ sectionMs: 100, mutexes, ...(side === undefined ? {} : { side }) }),
  );
  const sum = (of: "requests" | "sections"): number => hosts.reduce((all, host) => all + host[of], 0);
  await world.time.advance(8_000);
  const [requests, sections] = [sum("requests"), sum("sections")];
  await world.time.advance(12_000);
  return (sum("requests") - requests) / (sum("sections") - sections);
}

test("with `fair`, a crowd of writers looks no more often than one that waits for a mutex", async () => {
  const mutex = await requestsOfWriters();
  await world.close();
  // The look at the readers, and little else.
  expect(await requestsOfWriters("exclusive")).toBeLessThan(mutex + 2);
});
