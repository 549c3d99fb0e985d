import { useEffect, useState } from "preact/hooks";

/**
 * lazyModule returns a hook that loads a module when a component first needs it. The hook returns
 * undefined until then. If loading fails, the component works without it and the next component
 * tries again. Its method load loads the module before it is needed.
 */
export function lazyModule<T>(get: () => Promise<T>): { (wanted?: boolean): T | undefined; load: () => Promise<void> } {
  let there: T | undefined;
  let coming: Promise<void> | undefined;
  const fetch = () =>
    (coming ??= get().then(
      (got) => void (there = got),
      () => void (coming = undefined),
    ));
  function useHeavy(wanted = true) {
    const [, draw] = useState(0);
    const drawn = there; // it may arrive before the effect runs
    useEffect(() => {
      if (drawn || !wanted) return;
      let gone = false;
      void fetch().then(() => !gone && draw(1));
      return () => void (gone = true);
    }, [wanted]);
    return drawn;
  }
  return Object.assign(useHeavy, { load: fetch });
}
