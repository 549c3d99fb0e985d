import type { ButtonHTMLAttributes, ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Icon, type IconName } from "./icon";
import { failed } from "./toast";
import { w } from "./words";

type Look = "primary" | "quiet" | "danger" | "";

interface ButtonProps extends Omit<ButtonHTMLAttributes, "icon" | "label" | "size" | "type" | "disabled"> {
  look?: Look;
  icon?: IconName;
  /** Says what a button with a picture alone does. */
  label?: string;
  small?: boolean;
  disabled?: boolean;
  type?: "button" | "submit";
  children?: ComponentChildren;
}

/** A button. With an icon and a label, but no children, it is a picture with a name. */
export function Button({ look = "", icon, label, small, children, type = "button", class: more, ...rest }: ButtonProps) {
  const alone = icon && !children;
  const kind = ["button", look, small && "small", alone && "icon", more as string].filter(Boolean).join(" ");
  return (
    <button type={type} class={kind} aria-label={label} title={alone ? label : undefined} {...rest}>
      {icon && <Icon name={icon} size={small ? 16 : 18} />}
      {children}
    </button>
  );
}

/** A button that waits for what it began: it cannot be pressed twice, and says what failed. */
export function ActionButton({ act, children, ...rest }: Omit<ButtonProps, "onClick"> & { act: () => Promise<unknown> }) {
  const [busy, setBusy] = useState(false);
  const press = async () => {
    if (busy) return;
    setBusy(true);
    try {
      await act();
    } catch (error) {
      failed(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button {...rest} onClick={press} disabled={rest.disabled} aria-disabled={busy || undefined} aria-busy={busy || undefined}>
      {children}
    </Button>
  );
}

/** Puts a text into the clipboard. */
export function Copy({ text, label }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await copyText(text);
    setDone(true);
    setTimeout(() => setDone(false), 2000);
  };
  return (
    <Button small look="quiet" icon={done ? "check" : "copy"} onClick={() => void copy().catch(failed)} label={label ?? w().copy}>
      <span aria-live="polite">{done ? w().copied : w().copy}</span>
    </Button>
  );
}

/** Copies also where the page has no secure address, as on a hub in a private network. */
async function copyText(text: string) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (!copied) throw new Error("the browser does not let the page copy");
}
