/** The class of the requests that keys answer. */
export const requestClass = "asks-by-keys";

/** What had the focus before it went to a request. */
let before: Element | null = null;

/**
 * focusRequest moves the focus to the first request that keys answer, or from one to the next. It looks only into an
 * open dialog, if there is one. It returns false if there is no request.
 */
export function focusRequest(): boolean {
  const inside = document.querySelector("dialog[open]") ?? document;
  const all = [...inside.querySelectorAll<HTMLElement>(`.${requestClass}`)];
  const at = all.findIndex((r) => r.contains(document.activeElement));
  if (at < 0 && all.length) before = document.activeElement;
  all[(at + 1) % all.length]?.focus();
  return !!all.length;
}

/**
 * restoreFocus returns the focus from an answered request to where it was, or else to the message box, so that what the
 * user types next goes there. On a touch screen, the message box would open the keyboard.
 */
export function restoreFocus() {
  const box = matchMedia("(hover: hover)").matches ? document.querySelector<HTMLElement>(".chat-input") : null;
  const back = before instanceof HTMLElement && before !== document.body && before.isConnected ? before : box;
  before = null;
  back?.focus({ preventScroll: true });
}
