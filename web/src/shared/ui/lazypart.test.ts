import { same, test, until } from "../../../test/units/check";
import { loadAhead } from "./lazypart";

test("load ahead: a key loads the parts at once; a press loads what it opens first", async () => {
  const loaded: string[] = [];
  const part = (name: string) => async () => void loaded.push(name);
  loadAhead([part("a"), part("b")]);
  dispatchEvent(new PointerEvent("pointerdown"));
  await Promise.resolve();
  same(loaded, [], "before the click of the press");
  await until(() => loaded.length === 2, "the parts after the press");

  loadAhead([part("c")]);
  dispatchEvent(new KeyboardEvent("keydown", { key: "h" }));
  same(loaded, ["a", "b", "c"]);
  dispatchEvent(new KeyboardEvent("keydown", { key: "i" }));
  same(loaded.length, 3, "each part is loaded once");
});
