import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { msg } from "../../shared/i18n/messages";
import { anchor } from "./linecomments";
import { useReview } from "./reviewstate";

/** FileBox is a file in a review. It closes when the user marks it as viewed. */
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
  const seen = viewed.has(path);
  const [open, setOpen] = useState(first && !seen);
  useEffect(() => {
    if (seen) setOpen(false);
  }, [seen]);
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    const own = `#${anchor(path)}`;
    const show = () => location.hash === own && setOpen(true);
    // A link to the file opens it also if the address has it already.
    const press = (e: MouseEvent) =>
      e.target instanceof Element && e.target.closest("a")?.getAttribute("href") === own && setOpen(true);
    if (location.hash === own) {
      setOpen(true);
      box.current?.scrollIntoView(); // it was not there when the page was loaded
    }
    addEventListener("hashchange", show);
    addEventListener("click", press);
    return () => {
      removeEventListener("hashchange", show);
      removeEventListener("click", press);
    };
  }, [path]);
  return (
    <section class="review-file" ref={box} id={anchor(path)} aria-label={path}>
      <header>
        <button type="button" class="review-toggle" aria-expanded={open} onClick={() => setOpen(!open)}>
          <span aria-hidden="true">{open ? "▾" : "▸"}</span> <code>{path}</code>
        </button>
        {facts}
        {has(path) && (
          <label class="check small review-viewed">
            <input type="checkbox" checked={seen} onChange={(e) => setViewed(path, e.currentTarget.checked)} />
            <span>{msg("review.seen")}</span>
          </label>
        )}
      </header>
      {open && <div class="review-filebody">{children}</div>}
    </section>
  );
}
