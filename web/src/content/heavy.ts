import { useEffect, useState } from "preact/hooks";

/**
 * A hook that fetches something heavy when a component first needs it, as a parser. It is
 * undefined until that is there, and at once there for who comes later. When it cannot be
 * fetched the component goes on without, and the next one that is drawn tries again. What is
 * not wanted is not fetched.
 */
export function heavy<T>(get: () => Promise<T>): (wanted?: boolean) => T | undefined {
  let there: T | undefined;
  let coming: Promise<void> | undefined;
  const fetch = () =>
    (coming ??= get().then(
      (got) => void (there = got),
      () => void (coming = undefined),
    ));
  return function useHeavy(wanted = true) {
    const [, draw] = useState(0);
    useEffect(() => {
      if (there || !wanted) return;
      let gone = false;
      void fetch().then(() => !gone && draw(1));
      return () => void (gone = true);
    }, [wanted]);
    return there;
  };
}
