import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

let drawn = false;

interface PageProps {
  title: string;
  /** A sentence on what the page is for. */
  lead?: ComponentChildren;
  /** The buttons beside the title. */
  actions?: ComponentChildren;
  /** Takes all the room there is. */
  wide?: boolean;
  children: ComponentChildren;
}

/** A page with its title, which gets the focus when one comes here from another page. */
export function Page({ title, lead, actions, wide, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useTitle(title);
  useEffect(() => {
    if (drawn) heading.current?.focus({ preventScroll: true });
    drawn = true;
  }, []);
  return (
    <div class={wide ? "page wide" : "page"}>
      <header>
        <div class="grow">
          <h1 tabIndex={-1} ref={heading}>{title}</h1>
          {lead && <p class="lead">{lead}</p>}
        </div>
        {actions && <div class="row">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** Names the document after what is shown. */
export function useTitle(title: string) {
  useEffect(() => {
    document.title = title ? `${title} · Loadout` : "Loadout";
  }, [title]);
}
