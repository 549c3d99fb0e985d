import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

let drawn = false;

interface PageProps {
  title: string;
  /** What is shown beside the title. */
  beside?: ComponentChildren;
  /** One sentence about the page. */
  lead?: ComponentChildren;
  /** The buttons beside the title. */
  actions?: ComponentChildren;
  /** Uses the full width. */
  wide?: boolean;
  children: ComponentChildren;
}

/** Page is a page with a title, which gets the focus after a navigation. */
export function Page({ title, beside, lead, actions, wide, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useTitle(title);
  useLayoutEffect(() => {
    if (drawn) heading.current?.focus({ preventScroll: true });
    drawn = true;
  }, []);
  return (
    <div class={wide ? "page wide" : "page"}>
      <header>
        <div class="grow">
          <div class="row">
            <h1 tabIndex={-1} ref={heading}>
              {title}
            </h1>
            {beside}
          </div>
          {lead && <p class="lead">{lead}</p>}
        </div>
        {actions && <div class="row">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** useTitle sets the title of the document. */
export function useTitle(title: string) {
  useEffect(() => {
    document.title = title ? `${title} · Loadout` : "Loadout";
  }, [title]);
}
