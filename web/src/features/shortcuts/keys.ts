import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { msg } from "../../shared/i18n/messages";
import { store, stored } from "../../shared/i18n/storage";
import { type ShortcutName, allShortcuts, shortcuts } from "./table";

const storageKey = "loadout.shortcuts";

/** Whether shortcuts without a modifier work. Speech input may trigger them by accident. */
export const singleKeys = signal(stored(storageKey) !== "off");

export function setSingleKeys(on: boolean) {
  singleKeys.value = on;
  store(storageKey, on ? null : "off");
}

const mac = /Mac|iPhone|iPad/.test(navigator.platform);

/** The keys that send a text with several lines. */
export const sendKeys = mac ? "⌘ Enter" : "Ctrl+Enter";

/** isTyping reports whether an element takes text. */
export function isTyping(target: EventTarget | null): boolean {
  const e = target as HTMLElement | null;
  if (!e?.tagName) return false;
  if (e.isContentEditable || /^(textarea|select)$/i.test(e.tagName)) return true;
  return e.tagName === "INPUT" && !/^(button|checkbox|radio|range|file|submit)$/.test((e as HTMLInputElement).type);
}

/** isChoosing reports whether an element is in a menu or a list, in which letters may select an item. */
const isChoosing = (target: EventTarget | null) =>
  target instanceof Element && !!target.closest("[role=menu], [role=listbox]");

/** isKey reports whether an event is the key of a shortcut that works where the focus is. */
export function isKey(e: KeyboardEvent, name: ShortcutName): boolean {
  const s: { keys: string; typing?: boolean } = shortcuts[name];
  const parts = s.keys.split("+");
  const key = parts.pop()!;
  const mod = parts.includes("Mod");
  const has = (modifier: string) => parts.includes(modifier);
  // A symbol such as ? may need Shift or, on some keyboards, AltGr.
  const letter = key.length > 1 || /[a-z]/.test(key);
  if (e.isComposing || e.repeat || !isPressed(e, key)) return false;
  if (e.ctrlKey !== (has("Ctrl") || (mod && !mac)) || e.metaKey !== (mod && mac)) return false;
  if (letter && (e.shiftKey !== has("Shift") || e.altKey !== has("Alt"))) return false;
  if (s.typing) return true;
  if (!parts.length) return singleKeys.value && !isTyping(e.target) && !isChoosing(e.target);
  return !isTyping(e.target) || (e.target as HTMLTextAreaElement).matches("textarea:placeholder-shown");
}

/**
 * isPressed reports whether an event is a key. On a keyboard without Latin letters, the position of the key counts.
 */
function isPressed(e: KeyboardEvent, key: string): boolean {
  if (e.key.toLowerCase() === key.toLowerCase()) return true;
  return /^[a-z]$/.test(key) && /^[^\x00-\x7f]$/.test(e.key) && e.code === `Key${key.toUpperCase()}`;
}

const shown: Record<string, string> = { ArrowUp: "↑", ArrowDown: "↓", Enter: "↵ Enter", Escape: "Esc" };

/** keyNames returns the keys of a shortcut as they are written on the keyboard. */
export function keyNames(name: ShortcutName): string[] {
  return shortcuts[name].keys
    .split("+")
    .map((k) =>
      k === "Mod"
        ? mac
          ? "⌘"
          : "Ctrl"
        : k === "Alt" && mac
          ? "⌥"
          : (shown[k] ?? (k.length === 1 ? k.toUpperCase() : k)),
    );
}

/** keyText returns the keys of a shortcut for a sentence. */
export const keyText = (name: ShortcutName) => keyNames(name).join(mac ? " " : "+");

/** ariaKeys returns the keys of a shortcut for aria-keyshortcuts. */
export const ariaKeys = (name: ShortcutName) =>
  shortcuts[name].keys.replace("Mod", mac ? "Meta" : "Control").replace("Ctrl", "Control");

type Action = () => unknown;

/** The actions of the shown components, by shortcut. The last one counts that does not return false. */
const actions = new Map<ShortcutName, Action[]>();

/** useShortcut runs an action at a shortcut while a component is shown. */
export function useShortcut(name: ShortcutName, action: Action | undefined) {
  const latest = useRef(action);
  latest.current = action;
  const on = !!action;
  useLayoutEffect(() => {
    // A layout effect, because users may press the key as soon as the component is drawn.
    if (!on) return;
    const mine = () => latest.current?.();
    actions.set(name, [...(actions.get(name) ?? []), mine]);
    return () =>
      void actions.set(
        name,
        actions.get(name)!.filter((a) => a !== mine),
      );
  }, [name, on]);
}

/** run runs the action of a shortcut. It returns false if there is none. */
function run(name: ShortcutName): boolean {
  return !!actions.get(name)?.findLast((action) => action() !== false);
}

/**
 * listen runs the actions of shortcuts until the returned function is called. In a dialog, only the key that goes to a
 * request works.
 */
export function listen(): () => void {
  const key = (e: KeyboardEvent) => {
    if (e.defaultPrevented) return;
    const dialog = !!document.querySelector("dialog[open]");
    const name = allShortcuts().find(([name]) => actions.get(name)?.length && isKey(e, name))?.[0];
    if (name && (!dialog || name === "request") && run(name)) e.preventDefault();
  };
  addEventListener("keydown", key);
  return () => removeEventListener("keydown", key);
}

/** pressed clicks the button in an element that shows the pressed key, and reports whether there is one. */
export function pressed(e: KeyboardEvent, names: readonly ShortcutName[]): boolean {
  const name = names.find((n) => isKey(e, n));
  const button =
    name && (e.currentTarget as HTMLElement).querySelector<HTMLElement>(`[aria-keyshortcuts="${ariaKeys(name)}"]`);
  if (!button) return false;
  e.preventDefault();
  button.click();
  return true;
}

/** shortcutText returns what a shortcut does. */
export const shortcutText = (name: ShortcutName) => msg(shortcuts[name].text);
