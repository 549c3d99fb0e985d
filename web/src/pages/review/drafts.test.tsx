import { render } from "preact";
import { act } from "preact/test-utils";
import { same, test } from "../../../test/units/check";
import { CommentForm } from "./commentform";
import { DiscussionProvider } from "./discussion";
import { draftsOf } from "./drafts";

/** asks reports whether the browser asks before the page is closed. */
function asks(): boolean {
  const e = new Event("beforeunload", { cancelable: true });
  dispatchEvent(e);
  return e.defaultPrevented;
}

test("drafts of a review: the browser asks before any of them is lost, whatever page is shown", () => {
  const [one, two] = [draftsOf("tides", 1), draftsOf("tides", 2)];
  same(asks(), false);
  one.keep("note", "Why?");
  two.keep("note", " ");
  same(asks(), true);
  two.end("note");
  same(asks(), true);
  one.end("note");
  same(asks(), false);
});

test("comments: the text does not change while it is sent", async () => {
  const box = document.createElement("div");
  document.body.append(box);
  const drafts = draftsOf("tides", 3);
  let sent = () => {};
  const send = () => new Promise<void>((resolve) => (sent = resolve));
  await act(() =>
    render(
      <DiscussionProvider value={{ drafts } as never}>
        <CommentForm label="Comment" button="Send" draft="note" text="Why?" send={send} />
      </DiscussionProvider>,
      box,
    ),
  );
  const area = box.querySelector("textarea")!;
  same(area.readOnly, false);
  await act(() => box.querySelector("form")!.requestSubmit());
  same(area.readOnly, true);
  await act(async () => sent());
  same([area.readOnly, area.value], [false, ""]);
  render(null, box);
  box.remove();
});
