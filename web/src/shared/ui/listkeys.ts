import { useId, useRef, useState } from "preact/hooks";

/**
 * useListKeys marks an option of a list while the focus stays in its text field, as in a combobox.
 * Arrow keys move, and Enter picks. The mark returns to the first option when `reset` changes. With the keys of the
 * options, the mark stays on its option when others are added. The mark belongs to what is drawn: it is not set by an
 * effect, which would leave a key pressed at once to an option of the earlier list.
 */
export function useListKeys(count: number, onPick: (at: number) => void, reset: unknown, names?: readonly string[]) {
  const id = useId();
  const [, redraw] = useState({});
  const fresh = (at: number) => ({ at, name: names?.[at], reset, empty: !count });
  const mark = useRef(fresh(0));
  if (mark.current.reset !== reset || mark.current.empty !== !count) mark.current = fresh(0);
  const wanted = mark.current;
  const setAt = (to: number) => {
    mark.current = fresh(to);
    redraw({});
  };
  const found = wanted.name === undefined ? -1 : (names?.indexOf(wanted.name) ?? -1);
  const at = found >= 0 ? found : Math.min(wanted.at, Math.max(0, count - 1));
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
