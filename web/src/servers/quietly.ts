import { useEffect, useRef } from "preact/hooks";

/** Does something again and again while the page is looked at, and when one comes back to it. */
export function useQuietly(again: () => Promise<unknown>, every = 5000) {
  const busy = useRef(false);
  const latest = useRef(again);
  latest.current = again;
  useEffect(() => {
    const run = async () => {
      if (document.hidden || busy.current) return;
      busy.current = true;
      await latest.current().catch(() => {}); // what failed is shown by who asks
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
