import { signal } from "@preact/signals";
import { lazy } from "preact-iso";

const firstWait = 300;
const longestWait = 10_000;

/** Whether the hub serves another build of the page. The files of this one may be gone. */
export const outdated = signal(false);

/**
 * lazyPart returns a component that is loaded when it is first rendered. If loading fails, for
 * example because the hub restarts, it tries again until it succeeds, or sets outdated if the hub
 * serves another build: that page must be loaded first. An ErrorBoundary must be around the component.
 */
export const lazyPart: typeof lazy = (load) => lazy(() => retry(load));

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
