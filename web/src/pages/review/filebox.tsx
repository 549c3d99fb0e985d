import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { msg } from "../../shared/i18n/messages";
import { useDiscussion } from "./discussion";
import { anchor } from "./position";
import { useReview } from "./reviewstate";

/**
 * FileBox is a file in a review. It closes when the user marks it as viewed, and opens for a link to it or to one of
 * its comments, and for open comments.
 */
export function FileBox({
  path,
  facts,
  open: first,
  children,
}: {
  path: string;
  facts?: ComponentChildren;
  open: boolean;
  children: ComponentChildren;
}) {
  const { viewed, setViewed, has } = useReview();
  const discussion = useDiscussion();
  const seen = viewed.has(path);
  const [open, setOpen] = useState(first && !seen);
  const threads = discussion.open.filter((t) => t.path === path).length;
  const wanted = discussion.threads.some((t) => t.id === discussion.wanted && t.path === path);
  const linked = useRef(false); // a link has opened it, perhaps before the viewed files were loaded
  const show = () => {
    linked.current = true;
    setOpen(true);
  };
  useEffect(() => {
    if (seen && !linked.current) setOpen(false);
  }, [seen]);
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    if (threads && !seen) setOpen(true);
  }, [!threads]);
  useEffect(() => {
    if (wanted) show();
  }, [wanted]);
  useEffect(() => {
    const own = `#${anchor(path)}`;
    const read = () => location.hash === own && show();
    // A link to the file opens it also if the address has it already.
    const press = (e: MouseEvent) =>
      e.target instanceof Element && e.target.closest("a")?.getAttribute("href") === own && show();
    if (location.hash === own) {
      show();
      box.current?.scrollIntoView(); // it was not there when the page was loaded
    }
    addEventListener("hashchange", read);
    addEventListener("click", press);
    return () => {
      removeEventListener("hashchange", read);
      removeEventListener("click", press);
    };
  }, [path]);
  const mark = (viewed: boolean) => {
    setViewed(path, viewed);
    if (viewed) setOpen(false);
  };
  return (
    <section class="review-file" ref={box} id={anchor(path)} aria-label={path}>
      <header>
        <button type="button" class="review-toggle" aria-expanded={open} onClick={() => setOpen(!open)}>
          <span aria-hidden="true">{open ? "▾" : "▸"}</span> <code>{path}</code>
        </button>
        {facts}
        {threads > 0 && <span class="small muted">{msg("review.openThreads", { count: threads })}</span>}
        {has(path) && (
          <label class="check small review-viewed">
            <input type="checkbox" checked={seen} onChange={(e) => mark(e.currentTarget.checked)} />
            <span>{msg("review.seen")}</span>
          </label>
        )}
      </header>
      {open && <div class="review-filebody">{children}</div>}
    </section>
  );
}
