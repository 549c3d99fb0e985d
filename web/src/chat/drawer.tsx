import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../ui";

/** Whether the window is at least so wide. */
export function useWide(px: number): boolean {
  const query = `(min-width: ${px}px)`;
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

/** What is beside the conversation where there is room, in front of it: Escape, the cross and a click beside it close it. */
export function Drawer({ label, side, closeLabel, onClose, children }: DrawerProps) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current!;
    const before = document.activeElement as HTMLElement | null;
    dialog.showModal();
    return () => {
      dialog.close();
      before?.focus?.();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={`chat-drawer ${side}`}
      aria-label={label}
      onCancel={(e) => {
        if (e.target !== ref.current) return;
        e.preventDefault();
        onClose();
      }}
      onMouseDown={(e) => e.target === ref.current && onClose()}
    >
      <div class="chat-drawer-inside">
        <div class="chat-drawer-head"><span>{label}</span><Button look="quiet" icon="close" label={closeLabel} onClick={onClose} /></div>
        {children}
      </div>
    </dialog>
  );
}
