import { render } from "preact";
import { act } from "preact/test-utils";
import { same, test } from "../../../test/units/check";
import { useListKeys } from "./listkeys";

let picked = "";
let press: (key: string) => void;

function List({ names, query }: { names: string[]; query: string }) {
  const keys = useListKeys(names.length, (at) => (picked = names[at]!), query, names);
  press = (key) => void keys.key(new KeyboardEvent("keydown", { key }));
  return <p>{names[keys.at]}</p>;
}

test("list keys: the mark stays on its option when others are added before it", async () => {
  const box = document.createElement("div");
  document.body.append(box);
  const show = (query: string, ...names: string[]) => act(() => render(<List names={names} query={query} />, box));
  await show("a", "one", "two", "three");
  same(box.textContent, "one");
  await show("a", "zero", "one", "two", "three");
  same(box.textContent, "one");
  await act(() => press("ArrowDown"));
  same(box.textContent, "two");
  await show("a", "new", "zero", "one", "two", "three");
  same(box.textContent, "two");
  await act(() => press("Enter"));
  same(picked, "two");
  await show("b", "new", "zero", "one");
  same(box.textContent, "new");
  render(null, box);
  box.remove();
});
