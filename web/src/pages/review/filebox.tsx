import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
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
  useEffect(() => {
    const show = () => location.hash === `#${anchor(path)}` && setOpen(true);
    addEventListener("hashchange", show);
    return () => removeEventListener("hashchange", show);
  }, [path]);
  return (
    <section class="review-file" id={anchor(path)} aria-label={path}>
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
