import { lazy } from "preact-iso";

const firstWait = 300;
const longestWait = 10_000;

/**
 * lazyPart returns a component that is loaded when it is first rendered. If loading fails, for
 * example because the hub restarts, it tries again until it succeeds. An ErrorBoundary must be
 * around the component.
 */
export const lazyPart: typeof lazy = (load) => lazy(() => retry(load));

async function retry<T>(load: () => Promise<T>): Promise<T> {
  for (let wait = firstWait; ; wait = Math.min(2 * wait, longestWait)) {
    try {
      return await load();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}
