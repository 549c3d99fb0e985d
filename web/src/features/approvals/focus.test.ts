import { same, test } from "../../../test/units/check";
import { focusRequest, requestClass, restoreFocus } from "./focus";

function element(name: string, id: string, parent: Element = document.body): HTMLElement {
  const e = document.createElement(name);
  e.id = id;
  e.tabIndex = -1;
  parent.append(e);
  return e;
}

test("the key goes from one request to the next, and the focus returns after the answer", () => {
  const field = element("textarea", "field");
  same(focusRequest(), false);
  const requests = ["one", "two"].map((id) => element("div", id));
  for (const r of requests) r.className = requestClass;
  field.focus();
  const focused = () => document.activeElement?.id;
  same([focusRequest(), focused()], [true, "one"]);
  same([focusRequest(), focused()], [true, "two"]);
  same([focusRequest(), focused()], [true, "one"]);
  requests[0]!.remove();
  restoreFocus();
  same(focused(), "field");
  requests[1]!.remove();
  field.remove();
});

test("in a dialog, the key goes to its request", () => {
  element("div", "behind").className = requestClass;
  const dialog = element("dialog", "dialog");
  dialog.setAttribute("open", "");
  same(focusRequest(), false);
  element("div", "inside", dialog).className = requestClass;
  same([focusRequest(), document.activeElement?.id], [true, "inside"]);
  dialog.remove();
  document.getElementById("behind")!.remove();
});
