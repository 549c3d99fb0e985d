import { render } from "preact";
import { act } from "preact/test-utils";
import { same, test, until } from "../../../test/units/check";
import { Dialog } from "./dialog";
import { dismiss, failed, toasts } from "./notify";
import { Toasts } from "./toast";

test("toasts: a message is in the newest modal dialog, where it can be read and dismissed, and outlives it", async () => {
  for (const t of toasts.value) dismiss(t.id); // of other tests
  const box = document.createElement("div");
  document.body.append(box);
  const show = (...titles: string[]) =>
    act(() =>
      render(
        <>
          <Toasts />
          {titles.map((t) => (
            <Dialog key={t} title={t} onClose={() => {}}>
              {t}
            </Dialog>
          ))}
        </>,
        box,
      ),
    );
  const where = () => document.querySelector(".toasts")?.parentElement?.querySelector("h2")?.textContent;
  await show();
  same(document.querySelector(".toasts")!.parentElement === document.body, true);
  await show("one");
  await show("one", "two");
  failed(new Error("It is taken"));
  await until(() => document.querySelector(".toasts")?.textContent?.includes("It is taken"), "the message");
  same(where(), "two");
  const dismissal = document.querySelector<HTMLElement>(".toasts button")!;
  dismissal.focus();
  same(document.activeElement === dismissal, true); // what is inert gets no focus
  await show("one");
  await until(() => where() === "one", "the message in the other dialog");
  await show();
  await until(() => document.querySelector(".toasts")?.parentElement === document.body, "the message on the page");
  same(document.querySelector(".toasts")?.textContent?.includes("It is taken"), true);
  for (const t of toasts.value) dismiss(t.id);
  render(null, box);
  box.remove();
  await until(() => !document.querySelector(".toasts"), "its end");
});

test("a firm dialog is closed by its buttons only", async () => {
  const box = document.createElement("div");
  document.body.append(box);
  let closed = 0;
  const show = (firm: boolean) =>
    act(() =>
      render(
        <Dialog key={String(firm)} title="Secret" firm={firm} onClose={() => closed++}>
          x
        </Dialog>,
        box,
      ),
    );
  const leave = () => {
    const dialog = box.querySelector("dialog")!;
    dialog.dispatchEvent(new MouseEvent("mousedown"));
    dialog.dispatchEvent(new Event("cancel", { cancelable: true }));
    const escape = new KeyboardEvent("keydown", { key: "Escape", cancelable: true });
    dialog.dispatchEvent(escape);
    return escape.defaultPrevented;
  };
  await show(true);
  same([leave(), closed], [true, 0]);
  box.querySelector<HTMLElement>("header button")!.click();
  same(closed, 1);
  await show(false);
  same([leave(), closed], [false, 3]);
  render(null, box);
  box.remove();
});
