import { render } from "preact";
import { act } from "preact/test-utils";
import { holds, same, test, until } from "../../../test/units/check";
import { keepFocus } from "./listfocus";
import { NameField } from "./namefield";

/** field shows a name field in a row, with a menu button beside it once the field is closed. */
async function field(save: (text: string) => Promise<unknown>) {
  const box = document.createElement("div");
  box.className = "chat-row";
  document.body.append(box);
  let open = true;
  const draw = () =>
    render(
      open ? (
        <NameField label="Name" value="old" maxLength={60} save={save} onDone={() => ((open = false), draw())} />
      ) : (
        <button aria-haspopup="menu">Menu</button>
      ),
      box,
    );
  await act(draw);
  const input = box.querySelector("input")!;
  await until(() => document.activeElement === input, "the focus");
  const type = (text: string) =>
    act(() => {
      input.value = text;
      input.dispatchEvent(new Event("input", { bubbles: true }));
    });
  const press = (key: string) => act(() => void input.dispatchEvent(new KeyboardEvent("keydown", { key })));
  const end = () => {
    render(null, box);
    box.remove();
  };
  return { box, input, type, press, end, isOpen: () => open };
}

test("renaming: a refused name stays in the field with its error, and the next one is saved", async () => {
  const saved: string[] = [];
  const f = await field((text) => {
    saved.push(text);
    return text === "taken" ? Promise.reject(new Error("a folder has this name")) : Promise.resolve();
  });
  await f.type("taken");
  await f.press("Enter");
  const alert = await until(() => f.box.querySelector("[role=alert]"), "the error");
  same([f.isOpen(), f.input.value, alert.textContent], [true, "taken", "a folder has this name"]);
  same(f.input.getAttribute("aria-describedby"), alert.id);
  await f.type("free");
  await f.press("Enter");
  await until(() => document.activeElement?.textContent === "Menu", "the focus on the menu");
  same(saved, ["taken", "free"]);
  f.end();
});

test("renaming: Escape does not hide that a name is refused", async () => {
  let refuse: (e: Error) => void;
  const f = await field(() => new Promise((_, reject) => (refuse = reject)));
  await f.type("taken");
  await f.press("Enter");
  await f.press("Escape");
  same(f.isOpen(), true);
  await act(async () => refuse!(new Error("a folder has this name")));
  same(f.box.querySelector("[role=alert]")?.textContent, "a folder has this name");
  await f.press("Escape");
  same(f.isOpen(), false);
  f.end();
});

test("renaming: half a name is not saved when the window loses the focus", async () => {
  const saved: string[] = [];
  const f = await field((text) => Promise.resolve(saved.push(text)));
  await f.type("half");
  await act(() => void f.input.dispatchEvent(new FocusEvent("blur"))); // it is still the active element
  same([f.isOpen(), saved], [true, []]);
  await act(() => f.input.blur());
  await until(() => !f.isOpen(), "the end");
  same(saved, ["half"]);
  f.end();
});

test("the focus stays in the list: on the row in its new place, or on the next one if it is gone", async () => {
  const list = document.createElement("nav");
  list.className = "chat-sessions";
  document.body.append(list);
  const draw = (...rows: string[]) =>
    list.replaceChildren(
      ...rows.map((id) => {
        const row = document.createElement("div");
        row.dataset.row = id;
        const menu = document.createElement("button");
        menu.setAttribute("aria-haspopup", "menu");
        menu.textContent = id;
        row.append(menu);
        return row;
      }),
    );
  const focused = async (id: string) => {
    await until(() => document.activeElement?.textContent === id, `the focus on ${id}`);
    holds(list.contains(document.activeElement), "in the list");
  };
  draw("a", "b", "c");
  let restore = keepFocus("b");
  draw("b", "a", "c");
  restore();
  await focused("b");
  restore = keepFocus("a");
  draw("b", "c");
  restore();
  await focused("c");
  restore = keepFocus("c");
  draw("b");
  restore();
  await focused("b");
  list.remove();
});
