import { render } from "preact";
import { act } from "preact/test-utils";
import { same, test } from "../../../test/units/check";
import { hasUnsaved, useUnsaved } from "./unsaved";

function Input({ text }: { text: string }) {
  useUnsaved(!!text);
  return null;
}

test("unsaved input: the page knows of it until it is saved or gone", async () => {
  const box = document.createElement("div");
  const show = (...texts: string[]) =>
    act(() =>
      render(
        <>
          {texts.map((t, i) => (
            <Input key={i} text={t} />
          ))}
        </>,
        box,
      ),
    );
  const asks = () => {
    const e = new Event("beforeunload", { cancelable: true });
    dispatchEvent(e);
    return [hasUnsaved(), e.defaultPrevented];
  };
  await show("", "");
  same(asks(), [false, false]);
  await show("a", "b");
  same(asks(), [true, true]);
  await show("", "b");
  same(asks(), [true, true]);
  await show("");
  same(asks(), [false, false]);
  render(null, box);
});
