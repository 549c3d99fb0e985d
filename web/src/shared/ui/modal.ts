import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

/** The open modal dialogs, the newest one last. Everything outside of it is inert. */
export const modals = signal<readonly HTMLDialogElement[]>([]);

/**
 * useModal returns the props of a modal dialog element. The browser traps and restores the focus.
 * Escape and a click outside close it, unless it is firm.
 */
export function useModal(onClose: () => void, firm = false) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current!;
    const before = document.activeElement as HTMLElement | null;
    dialog.showModal();
    modals.value = [...modals.value, dialog];
    return () => {
      modals.value = modals.value.filter((d) => d !== dialog);
      dialog.close();
      before?.focus?.();
    };
  }, []);
  return {
    ref,
    onCancel: (e: Event) => {
      if (e.target !== ref.current) return; // from a child, such as a file input
      e.preventDefault();
      if (!firm) onClose();
    },
    // A browser closes a dialog at the second Escape in spite of onCancel.
    onKeyDown: (e: KeyboardEvent) => firm && e.key === "Escape" && e.preventDefault(),
    onMouseDown: (e: MouseEvent) => !firm && e.target === ref.current && onClose(),
  };
}
