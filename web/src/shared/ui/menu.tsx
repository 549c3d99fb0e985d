import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { msg } from "../i18n/messages";
import { Button } from "./button";
import type { IconName } from "./icon";

interface MenuProps {
  label?: string;
  icon?: IconName;
  /** The text beside the icon. */
  text?: ComponentChildren;
  /** The direction of the list, by default below and aligned to the end. */
  place?: "start" | "up" | "start up";
  small?: boolean;
  /** MenuItem elements. */
  children: ComponentChildren;
}

/** Menu is a button with a list of actions. Arrow keys move, Escape closes. */
export function Menu({ label = msg("ui.moreActions"), icon = "more", text, place, small, children }: MenuProps) {
  const [open, setOpen] = useState(false);
  const ref = useRef<HTMLDivElement>(null);
  const items = () => [...(ref.current?.querySelectorAll<HTMLElement>('[role="menuitem"]:not(:disabled)') ?? [])];
  useLayoutEffect(() => {
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
      <Button
        look="quiet"
        small={small}
        icon={icon}
        label={label}
        aria-haspopup="menu"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        {text}
      </Button>
      {open && (
        <div role="menu" aria-label={label} onKeyDown={key} onClick={leave}>
          {children}
        </div>
      )}
    </div>
  );
}

/** MenuItem is an action in a Menu. */
export function MenuItem({
  onClick,
  href,
  danger,
  disabled,
  off,
  children,
}: {
  onClick?: () => void;
  href?: string;
  danger?: boolean;
  disabled?: boolean;
  /** Whether the action is impossible for a reason that the item says. The item can still have the focus. */
  off?: boolean;
  children: ComponentChildren;
}) {
  if (href)
    return (
      <a role="menuitem" tabIndex={-1} href={href}>
        {children}
      </a>
    );
  return (
    <button
      type="button"
      role="menuitem"
      tabIndex={-1}
      disabled={disabled}
      aria-disabled={off || undefined}
      class={danger ? "danger" : ""}
      onClick={(e) => (off ? e.stopPropagation() : onClick?.())}
    >
      {children}
    </button>
  );
}
