/** The unit tests by name. They run in a browser: see run.mjs. */
export const tests: Record<string, () => void | Promise<void>> = {};

/** test registers a test: `test("what holds", () => {...})`. A test fails by throwing. */
export function test(name: string, run: () => void | Promise<void>) {
  if (tests[name]) throw new Error(`two tests are named ${name}`);
  tests[name] = run;
}

/** same fails unless both values are equal as JSON. */
export function same(is: unknown, wanted: unknown, about = "") {
  const [a, b] = [JSON.stringify(is), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${about && about + ": "}is ${a}, wanted ${b}`);
}

export function holds(what: unknown, about: string) {
  if (!what) throw new Error(about);
}

/** until waits up to 10 seconds for a value. */
export async function until<T>(get: () => T | undefined | null | false, about: string): Promise<T> {
  for (const end = Date.now() + 10_000; Date.now() < end; await new Promise((r) => setTimeout(r, 20))) {
    const got = get();
    if (got) return got;
  }
  throw new Error(`waited in vain for ${about}`);
}
