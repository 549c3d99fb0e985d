import { same, test } from "../../../test/units/check";
import { ariaKeys, isKey, keyText, setSingleKeys } from "./keys";
import { allShortcuts, type ShortcutName } from "./table";

/** at returns an event of a key in an element. */
function at(element: HTMLElement, key: string, more: KeyboardEventInit = {}): KeyboardEvent {
  let seen: KeyboardEvent | undefined;
  const see = (e: KeyboardEvent) => (seen = e);
  document.body.append(element);
  element.addEventListener("keydown", see);
  element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, ...more }));
  element.removeEventListener("keydown", see);
  return seen!;
}

function field(text = ""): HTMLTextAreaElement {
  const area = document.createElement("textarea");
  area.placeholder = "Message";
  area.value = text;
  return area;
}

test("shortcuts work where typing cannot trigger them", () => {
  const page = document.createElement("div");
  const is = (name: ShortcutName, e: KeyboardEvent) => isKey(e, name);
  same(is("fresh", at(page, "c")), true);
  same(is("fresh", at(page, "C")), true); // with caps lock
  same(is("fresh", at(page, "c", { ctrlKey: true })), false); // copies
  same(is("fresh", at(page, "c", { repeat: true })), false);
  same(is("fresh", at(page, "c", { isComposing: true })), false);
  for (const name of ["fresh", "allow", "decline", "sheet", "focus", "panel"] as const)
    same(is(name, at(field(), allShortcuts().find(([n]) => n === name)![1].keys)), false);
  same(is("sheet", at(page, "?", { shiftKey: true })), true);
  same(is("next", at(page, "ArrowDown", { altKey: true })), true);
  same(is("next", at(field(), "ArrowDown", { altKey: true })), true);
  same(is("next", at(field("text"), "ArrowDown", { altKey: true })), false); // moves the cursor on a Mac
  same(is("request", at(field("text"), "Enter", { ctrlKey: true, shiftKey: true })), true);
  same(is("request", at(field("text"), "Enter", { ctrlKey: true })), false); // sends
  same(is("edit", at(field(), "ArrowUp")), true);
});

test("shortcuts work on keyboards without Latin letters, by the position of the key", () => {
  const page = document.createElement("div");
  same(isKey(at(page, "с", { code: "KeyC" }), "fresh"), true); // Cyrillic
  same(isKey(at(page, "λ", { code: "KeyK", ctrlKey: true }), "palette"), true);
  same(isKey(at(page, "j", { code: "KeyC" }), "fresh"), false); // Dvorak
});

test("a letter in a menu or a list is no shortcut", () => {
  for (const role of ["menu", "listbox"]) {
    const box = document.createElement("div");
    box.setAttribute("role", role);
    const item = document.createElement("button");
    box.append(item);
    document.body.append(box);
    let seen: boolean | undefined;
    const see = (e: KeyboardEvent) => (seen = isKey(e, "fresh"));
    addEventListener("keydown", see);
    item.dispatchEvent(new KeyboardEvent("keydown", { key: "c", bubbles: true }));
    removeEventListener("keydown", see);
    box.remove();
    same(seen, false);
  }
});

test("shortcuts of a single key can be turned off", () => {
  const page = document.createElement("div");
  setSingleKeys(false);
  same(isKey(at(page, "c"), "fresh"), false);
  same(isKey(at(page, "y"), "allow"), false);
  same(isKey(at(page, "Enter", { ctrlKey: true, shiftKey: true }), "request"), true);
  setSingleKeys(true);
  same(isKey(at(page, "y"), "allow"), true);
});

test("no two shortcuts of a scope have the same key, and none with a letter allows always", () => {
  const seen = allShortcuts().map(([, s]) => `${s.scope} ${s.keys}`);
  same(new Set(seen).size, seen.length);
  same([keyText("allow"), ariaKeys("request")], ["Y", "Control+Shift+Enter"]);
});
