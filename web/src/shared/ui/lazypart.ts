import { signal } from "@preact/signals";
import { lazy } from "preact-iso";
import { lazyModule } from "../content/lazyload";

const firstWait = 300;
const longestWait = 10_000;
const quiet = 2500; // until parts are loaded ahead, in milliseconds
const afterPress = 1000; // until then, what the user pressed is loaded

/** Whether the hub serves another build of the page. The files of this one may be gone. */
export const outdated = signal(false);

/**
 * lazyPart returns a component that is loaded when it is first rendered. If loading fails, for
 * example because the hub restarts, it tries again until it succeeds, or sets outdated if the hub
 * serves another build: that page must be loaded first. An ErrorBoundary must be around the component.
 */
export const lazyPart: typeof lazy = (load) => lazy(() => retry(load));

/** laterPart returns a hook as `heavy` does, which tries again as {@link lazyPart} does if loading fails. */
export const laterPart = <T>(load: () => Promise<T>) => lazyModule(() => retry(load));

/**
 * loadAhead loads parts that the user may need next, one after the other: at an idle moment, at once
 * when the user types, or shortly after the user presses something, so that what the press opens is
 * loaded first. It does nothing if the browser saves data.
 */
export function loadAhead(parts: readonly (() => Promise<unknown>)[]): void {
  const { connection } = navigator as { connection?: { saveData?: boolean } };
  if (connection?.saveData) return;
  let begun = false;
  const begin = async () => {
    removeEventListener("keydown", listener, true);
    removeEventListener("pointerdown", press, true);
    if (begun) return;
    begun = true;
    for (const load of parts) await load().catch(() => {}); // it is loaded again when it is needed
  };
  const listener = () => void begin();
  const press = () => void setTimeout(listener, afterPress);
  addEventListener("keydown", listener, true);
  addEventListener("pointerdown", press, true);
  // While the page waits for its first responses, the browser is idle too. Safari has no idle callbacks.
  const whenIdle = () =>
    "requestIdleCallback" in window ? requestIdleCallback(listener, { timeout: 10_000 }) : listener();
  setTimeout(whenIdle, quiet);
}

async function retry<T>(load: () => Promise<T>): Promise<T> {
  for (let wait = firstWait; ; wait = Math.min(2 * wait, longestWait)) {
    try {
      return await load();
    } catch {
      // Without this header, the hub answers with a text for programs.
      const page = await fetch("/", { headers: { Accept: "text/html" } }).catch(() => undefined);
      // The directory of the page's own scripts is a hash of all of them.
      if (page?.ok && !(await page.text()).includes(import.meta.url.split("/").at(-2)!)) {
        outdated.value = true;
        return new Promise(() => {});
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}
