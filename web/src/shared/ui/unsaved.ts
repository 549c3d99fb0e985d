import { useLayoutEffect } from "preact/hooks";

let inputs = 0;

/** hasUnsaved reports whether something on the page would be lost with the page. */
export const hasUnsaved = () => inputs > 0;

/** useUnsaved makes the browser ask before the page is closed while a component has input that is kept nowhere else. */
export function useUnsaved(unsaved: boolean) {
  useLayoutEffect(() => {
    if (!unsaved) return;
    const warn = (e: BeforeUnloadEvent) => e.preventDefault();
    inputs++;
    addEventListener("beforeunload", warn);
    return () => {
      inputs--;
      removeEventListener("beforeunload", warn);
    };
  }, [unsaved]);
}
