/** The tests of the page by name. They run in a browser, as the page does: see run.mjs. */
export const tests: Record<string, () => void | Promise<void>> = {};

/** `test("what is so", () => {...})`: fails by throwing. */
export function test(name: string, run: () => void | Promise<void>) {
  if (tests[name]) throw new Error(`two tests are named ${name}`);
  tests[name] = run;
}

/** Fails unless both are the same, as JSON. */
export function same(is: unknown, wanted: unknown, about = "") {
  const [a, b] = [JSON.stringify(is), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${about && about + ": "}is ${a}, wanted ${b}`);
}

export function holds(what: unknown, about: string) {
  if (!what) throw new Error(about);
}

/** Waits until something is there, as what is fetched; at most 10 seconds. */
export async function until<T>(get: () => T | undefined | null | false, about: string): Promise<T> {
  for (const end = Date.now() + 10_000; Date.now() < end; await new Promise((r) => setTimeout(r, 20))) {
    const got = get();
    if (got) return got;
  }
  throw new Error(`waited in vain for ${about}`);
}
