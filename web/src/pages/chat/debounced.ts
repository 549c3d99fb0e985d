import { useEffect, useState } from "preact/hooks";

/**
 * useDebounced returns a number once it has been stable for a moment, to limit requests to the hub.
 * It is -1 at first.
 */
export function useDebounced(n: number): number {
  const [settled, set] = useState(n);
  useEffect(() => {
    if (settled < 0) return set(n);
    const timer = setTimeout(() => set(n), 400);
    return () => clearTimeout(timer);
  }, [n]);
  return settled;
}
