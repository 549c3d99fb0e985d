import { useEffect, useRef } from "preact/hooks";

/** useQuietly calls a function repeatedly while the page is visible, and when the user returns to it. */
export function useQuietly(again: () => Promise<unknown>, every = 5000) {
  const busy = useRef(false);
  const latest = useRef(again);
  latest.current = again;
  useEffect(() => {
    const run = async () => {
      if (document.hidden || busy.current) return;
      busy.current = true;
      await latest.current().catch(() => {}); // the caller shows the error
      busy.current = false;
    };
    const timer = setInterval(() => void run(), every);
    const seen = () => void run();
    document.addEventListener("visibilitychange", seen);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [every]);
}
