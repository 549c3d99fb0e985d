import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button";
import type { IconName } from "./icon";
import { w } from "./words";

interface MenuProps {
  label?: string;
  icon?: IconName;
  /** What the button shows beside its picture. */
  text?: ComponentChildren;
  /** Where the list opens: below its end if nothing is said. */
  place?: "start" | "up" | "start up";
  small?: boolean;
  /** Buttons and links with role="menuitem": see MenuItem. */
  children: ComponentChildren;
}

/** A button that opens a list of things to do. Arrows go through it, Escape closes it. */
export function Menu({ label = w().moreActions, icon = "more", text, place, small, children }: MenuProps) {
  const [open, setOpen] = useState(false);
  const ref = useRef<HTMLDivElement>(null);
  const items = () => [...(ref.current?.querySelectorAll<HTMLElement>('[role="menuitem"]:not(:disabled)') ?? [])];
  useEffect(() => {
    if (!open) return;
    items()[0]?.focus();
    const away = (e: Event) => !ref.current?.contains(e.target as Node) && setOpen(false);
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [open]);
  const leave = () => {
    setOpen(false);
    ref.current?.querySelector("button")?.focus();
  };
  const key = (e: KeyboardEvent) => {
    const all = items();
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 + all.length, Home: 0, End: all.length - 1 }[e.key];
    if (e.key === "Escape") {
      e.stopPropagation();
      leave();
    } else if (e.key === "Tab") setOpen(false);
    else if (to !== undefined && all.length) all[to % all.length]?.focus();
    else return;
    if (e.key !== "Tab") e.preventDefault();
  };
  return (
    <div class={["menu", place].filter(Boolean).join(" ")} ref={ref}>
      <Button look="quiet" small={small} icon={icon} label={label} aria-haspopup="menu" aria-expanded={open} onClick={() => setOpen(!open)}>{text}</Button>
      {open && <div role="menu" aria-label={label} onKeyDown={key} onClick={leave}>{children}</div>}
    </div>
  );
}

/** One thing to do in a Menu. */
export function MenuItem({ onClick, href, danger, disabled, children }: { onClick?: () => void; href?: string; danger?: boolean; disabled?: boolean; children: ComponentChildren }) {
  if (href) return <a role="menuitem" tabIndex={-1} href={href}>{children}</a>;
  return <button type="button" role="menuitem" tabIndex={-1} disabled={disabled} class={danger ? "danger" : ""} onClick={onClick}>{children}</button>;
}
