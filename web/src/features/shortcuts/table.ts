import type { MessageKey } from "../../shared/i18n/messages";

/** Where a shortcut works. */
export type Scope = "everywhere" | "chat" | "input" | "request";

interface Shortcut {
  /** The keys, such as "Mod+k", in which Mod is ⌘ on a Mac and else Ctrl. Twice means within two seconds. */
  keys: string;
  scope: Scope;
  text: MessageKey;
  /**
   * Whether it works while the user types. Other shortcuts work outside of text fields and, with a
   * modifier, in an empty message box. Those without a modifier can be turned off.
   */
  typing?: boolean;
  twice?: boolean;
}

/**
 * All keyboard shortcuts of the page. The sheet lists them, and the code asks {@link isKey} for them. No
 * browser on Linux, macOS or Windows uses them, except that Ctrl+K and / open a search there as here.
 * Keys that answer a request work only while the focus is on it, so that no typing triggers them, and
 * nothing is allowed for longer than once by a key.
 */
export const shortcuts = {
  palette: { keys: "Mod+k", scope: "everywhere", text: "shortcuts.palette", typing: true },
  sheet: { keys: "?", scope: "everywhere", text: "shortcuts.sheet" },
  fresh: { keys: "c", scope: "everywhere", text: "shortcuts.fresh" },
  focus: { keys: "/", scope: "everywhere", text: "shortcuts.focus" },
  next: { keys: "Alt+ArrowDown", scope: "chat", text: "shortcuts.next" },
  previous: { keys: "Alt+ArrowUp", scope: "chat", text: "shortcuts.previous" },
  panel: { keys: "s", scope: "chat", text: "shortcuts.panel" },
  stop: { keys: "Escape", scope: "chat", text: "shortcuts.stop", typing: true, twice: true },
  send: { keys: "Enter", scope: "input", text: "shortcuts.send", typing: true },
  line: { keys: "Shift+Enter", scope: "input", text: "shortcuts.line", typing: true },
  skill: { keys: "/", scope: "input", text: "shortcuts.skill", typing: true },
  edit: { keys: "ArrowUp", scope: "input", text: "shortcuts.edit", typing: true },
  request: { keys: "Ctrl+Shift+Enter", scope: "request", text: "shortcuts.request", typing: true },
  allow: { keys: "y", scope: "request", text: "shortcuts.allow" },
  decline: { keys: "n", scope: "request", text: "shortcuts.decline" },
} as const satisfies Record<string, Shortcut>;

export type ShortcutName = keyof typeof shortcuts;

/** all returns the shortcuts with their names, in order. */
export const allShortcuts = () => Object.entries(shortcuts) as [ShortcutName, Shortcut][];
