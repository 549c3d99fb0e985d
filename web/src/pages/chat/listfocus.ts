const list = ".chat-sessions";

/**
 * keepFocus returns a function that focuses the menu of a row of the list after the row was moved, or of the row after
 * it if it is gone. It does nothing if the focus was not lost.
 */
export function keepFocus(id: string): () => void {
  const rows = [...document.querySelectorAll<HTMLElement>(`${list} [data-row]`)].map((e) => e.dataset.row!);
  const at = rows.indexOf(id);
  if (at < 0) return () => {};
  const candidates = [id, ...rows.slice(at + 1), ...rows.slice(0, at).reverse()];
  const focus = () => {
    if (document.activeElement && document.activeElement !== document.body) return;
    const menu = candidates
      .map((row) => document.querySelector<HTMLElement>(`${list} [data-row="${row}"] [aria-haspopup="menu"]`))
      .find(Boolean);
    (menu ?? document.querySelector<HTMLElement>(`${list} a`))?.focus();
  };
  return () => void requestAnimationFrame(focus); // when the list is drawn and a dialog has returned the focus
}
