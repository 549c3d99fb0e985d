import { useEffect, useRef } from "preact/hooks";

/**
 * useModal returns the props of a modal dialog element. The browser traps and restores the focus.
 * Escape and a click outside close it.
 */
export function useModal(onClose: () => void) {
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
  return {
    ref,
    onCancel: (e: Event) => {
      if (e.target !== ref.current) return; // from a child, such as a file input
      e.preventDefault();
      onClose();
    },
    onMouseDown: (e: MouseEvent) => e.target === ref.current && onClose(),
  };
}
