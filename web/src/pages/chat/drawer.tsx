import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button, useModal } from "../../shared/ui";

/** useWide reports whether the window has at least this width. */
export const useWide = (px: number) => useMedia(`(min-width: ${px}px)`);

/** useMedia reports whether the window matches a media query. */
export function useMedia(query: string): boolean {
  const [wide, setWide] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const changed = () => setWide(media.matches);
    changed();
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  }, [query]);
  return wide;
}

interface DrawerProps {
  label: string;
  side: "start" | "end";
  closeLabel: string;
  onClose: () => void;
  children: ComponentChildren;
}

/**
 * Drawer shows its content beside the conversation, or in front of it on narrow screens. Escape,
 * the close button and a click outside close it.
 */
export function Drawer({ label, side, closeLabel, onClose, children }: DrawerProps) {
  const modal = useModal(onClose);
  return (
    <dialog {...modal} class={`chat-drawer ${side}`} aria-label={label}>
      <div class="chat-drawer-inside">
        <div class="chat-drawer-head">
          <span>{label}</span>
          <Button look="quiet" icon="close" label={closeLabel} onClick={onClose} />
        </div>
        {children}
      </div>
    </dialog>
  );
}
