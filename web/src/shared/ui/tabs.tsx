import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

interface TabsProps<T extends string> {
  label: string;
  tabs: [id: T, text: ComponentChildren][];
  open: T;
  onOpen: (id: T) => void;
  children: ComponentChildren;
}

/** Tabs shows one of several views. Arrow keys switch between them. */
export function Tabs<T extends string>({ label, tabs, open, onOpen, children }: TabsProps<T>) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => show(list.current), [open]);
  const key = (e: KeyboardEvent) => {
    const at = tabs.findIndex(([t]) => t === open);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1 + tabs.length, Home: 0, End: tabs.length - 1 }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    const next = to % tabs.length;
    onOpen(tabs[next]![0]);
    (list.current?.children[next] as HTMLElement | undefined)?.focus();
  };
  return (
    <div class="stack">
      <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={key}>
        {tabs.map(([t, text]) => (
          <button
            key={t}
            type="button"
            role="tab"
            id={`${id}-${t}`}
            aria-selected={t === open}
            aria-controls={`${id}-panel`}
            tabIndex={t === open ? 0 : -1}
            onClick={() => onOpen(t)}
          >
            {text}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${open}`} tabIndex={-1}>
        {children}
      </div>
    </div>
  );
}

/** show scrolls the tab list to the open tab, without scrolling the page. */
function show(list: HTMLElement | null) {
  const tab = list?.querySelector("[aria-selected=true]");
  if (!list || !tab) return;
  const [room, place] = [list.getBoundingClientRect(), tab.getBoundingClientRect()];
  list.scrollLeft += Math.max(0, place.right - room.right) + Math.min(0, place.left - room.left);
}
