import { signal } from "@preact/signals";
import { render } from "preact";
import { holds, same, test } from "../../../test/units/check";
import type { Version } from "./branches";
import type { Turn } from "./transcript";
import { MemoTurn } from "./turn";
import { type TurnActions, TurnButton, Versions } from "./turnactions";

const turn = (input: number) => ({ input, text: "a", skill: "" }) as Turn;
const versions: Version[] = [1, 2, 3].map((input) => ({ turn: turn(input), last: input * 10 }));

test("turn actions: while a turn runs, they do nothing and say why; then the arrow keys switch versions", () => {
  const chosen: (number | string)[] = [];
  const box = document.createElement("div");
  document.body.append(box);
  for (const busy of [true, false]) {
    const actions = { busy, switchTo: (step: number) => Promise.resolve(chosen.push(step)) } as TurnActions;
    render(
      <>
        <Versions turn={versions[1]!.turn} versions={versions} actions={actions} />
        <TurnButton icon="again" label="Again" busy={busy} onClick={() => chosen.push("again")} />
      </>,
      box,
    );
    const buttons = [...box.querySelectorAll("button")];
    same(
      buttons.map((b) => [b.getAttribute("aria-disabled"), b.disabled, b.title]),
      ["Earlier version", "Later version", "Again"].map((label) =>
        busy ? ["true", false, "Available when the response is finished"] : [null, false, label],
      ),
    );
    buttons.forEach((b) => b.click());
    for (const key of ["ArrowLeft", "ArrowRight", "ArrowUp"])
      buttons[0]!.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    same(chosen, busy ? [] : [10, 30, "again", 10, 30]);
  }
  render(<Versions turn={turn(3)} versions={versions} actions={{ busy: false } as TurnActions} />, box);
  same(box.textContent, "3 / 3Version 3 of 3");
  same(
    [...box.querySelectorAll("button")].map((b) => b.getAttribute("aria-disabled")),
    [null, "true"],
  );
  render(null, box);
  box.remove();
});

test("turn actions: a message that waits or is answered cannot be edited, and has no buttons", () => {
  const box = document.createElement("div");
  document.body.append(box);
  const actions = { busy: true, edited: signal(0) } as TurnActions;
  for (const state of ["waiting", "running", "done"] as const) {
    const shown = {
      ...turn(2),
      kind: "message",
      state,
      said: "2026-01-01T00:00:00Z",
      items: [],
      images: [],
    } as unknown as Turn;
    const all = [
      { turn: { ...turn(1), text: "b" }, last: 10 },
      { turn: shown, last: 20 },
    ];
    render(<MemoTurn session="s" turn={shown} number={1} newest versions={all} actions={actions} />, box);
    same(
      [...box.querySelectorAll("button")].map((b) => b.title),
      state === "done" ? Array<string>(4).fill("Available when the response is finished") : [],
    );
  }
  render(null, box);
  box.remove();
});

test("turn actions: a switch that failed says so", () => {
  const box = document.createElement("div");
  for (const [state, text] of [
    ["running", "Switching to another version…"],
    ["failed", "Couldn't switch to another version"],
  ] as const) {
    const shown = { ...turn(2), kind: "branch", state, items: [] } as unknown as Turn;
    render(<MemoTurn session="s" turn={shown} number={1} newest />, box);
    holds(box.textContent?.includes(text), `${state}: ${box.textContent}`);
  }
  render(null, box);
});
