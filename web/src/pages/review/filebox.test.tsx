import { render } from "preact";
import { act } from "preact/test-utils";
import { same, test, until } from "../../../test/units/check";
import { DiscussionProvider } from "./discussion";
import { FileBox } from "./filebox";
import { FileTree } from "./filetree";
import { ReviewProvider } from "./reviewstate";

test("review: all files that can be marked are counted, and a link opens its file on load and again", async () => {
  const box = document.createElement("div");
  document.body.append(box);
  const review = {
    viewed: new Set(["a.py"]),
    setViewed: () => {},
    again: () => undefined,
    has: (path: string) => path !== "gone.py",
  };
  location.hash = "#file-a.py";
  await act(() =>
    render(
      <ReviewProvider value={review}>
        <DiscussionProvider value={{ threads: [], open: [] } as never}>
          <FileTree files={[{ path: "a.py" }, { path: "gone.py" }]} />
          <FileBox path="a.py" open={false}>
            code
          </FileBox>
        </DiscussionProvider>
      </ReviewProvider>,
      box,
    ),
  );
  same(box.querySelector("summary")!.textContent!.includes("1 of 1"), true);
  const toggle = box.querySelector<HTMLElement>(".review-toggle")!;
  const isOpen = () => toggle.getAttribute("aria-expanded") === "true";
  await until(isOpen, "the file of the address");
  await act(() => toggle.click());
  same(isOpen(), false);
  await act(() => box.querySelector<HTMLElement>('a[href="#file-a.py"]')!.click());
  same(isOpen(), true);
  render(null, box);
  box.remove();
  history.replaceState(null, "", location.pathname);
});
