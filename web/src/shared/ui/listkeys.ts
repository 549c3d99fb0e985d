import { useEffect, useId, useState } from "preact/hooks";

/**
 * useListKeys marks an option of a list while the focus stays in its text field, as in a combobox.
 * Arrow keys move, and Enter picks. The mark returns to the first option when `reset` changes.
 */
export function useListKeys(count: number, onPick: (at: number) => void, reset: unknown) {
  const id = useId();
  const [wanted, setAt] = useState(0);
  useEffect(() => setAt(0), [reset]);
  const at = Math.min(wanted, Math.max(0, count - 1));
  const key = (e: KeyboardEvent): boolean => {
    if (e.isComposing || e.keyCode === 229) return false;
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      setAt((at + (e.key === "ArrowDown" ? 1 : count - 1)) % Math.max(1, count));
    } else if (e.key === "Enter") {
      if (count) onPick(at);
    } else return false;
    e.preventDefault();
    return true;
  };
  return {
    at,
    key,
    list: `${id}-list`,
    /** The ID of the marked option. */
    active: count ? `${id}-${at}` : undefined,
    /** The props of an option. */
    option: (i: number) => ({
      id: `${id}-${i}`,
      role: "option" as const,
      "aria-selected": i === at,
      onPointerDown: (e: Event) => e.preventDefault(), // the focus stays in the text field
      onPointerMove: () => i !== at && setAt(i),
      onClick: () => onPick(i),
    }),
  };
}
