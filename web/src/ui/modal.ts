import { useEffect, useRef } from "preact/hooks";

/**
 * What a dialog element is given to be modal as long as it is drawn. The browser keeps the
 * focus in it and gives it back; Escape and a click beside it close it.
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
      if (e.target !== ref.current) return; // of what is inside, as of a field for files
      e.preventDefault();
      onClose();
    },
    onMouseDown: (e: MouseEvent) => e.target === ref.current && onClose(),
  };
}
