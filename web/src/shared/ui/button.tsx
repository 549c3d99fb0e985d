import type { ButtonHTMLAttributes, ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { msg } from "../i18n/messages";
import { Icon, type IconName } from "./icon";
import { failed } from "./notify";

type Look = "primary" | "quiet" | "danger" | "";

interface ButtonProps extends Omit<ButtonHTMLAttributes, "icon" | "label" | "size" | "type" | "disabled"> {
  look?: Look;
  icon?: IconName;
  /** The label of a button that has only an icon. */
  label?: string;
  small?: boolean;
  disabled?: boolean;
  type?: "button" | "submit";
  children?: ComponentChildren;
}

/** Button is a button. With an icon and a label but no children, it shows only the icon. */
export function Button({
  look = "",
  icon,
  label,
  small,
  children,
  type = "button",
  class: more,
  ...rest
}: ButtonProps) {
  const alone = icon && !children;
  const kind = ["button", look, small && "small", alone && "icon", more as string].filter(Boolean).join(" ");
  return (
    <button type={type} class={kind} aria-label={label} title={alone ? label : undefined} {...rest}>
      {icon && <Icon name={icon} size={small ? 16 : 18} />}
      {children}
    </button>
  );
}

/** ActionButton runs an asynchronous action once at a time, and reports its error. */
export function ActionButton({
  act,
  children,
  ...rest
}: Omit<ButtonProps, "onClick"> & { act: () => Promise<unknown> }) {
  const [busy, setBusy] = useState(false);
  const press = async () => {
    if (busy || rest["aria-disabled"]) return;
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
    <Button
      {...rest}
      onClick={press}
      aria-disabled={busy || rest["aria-disabled"] || undefined}
      aria-busy={busy || undefined}
    >
      {children}
    </Button>
  );
}

/** Copy copies a text to the clipboard. */
export function Copy({ text, label }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await copyText(text);
    setDone(true);
    setTimeout(() => setDone(false), 2000);
  };
  return (
    <Button
      small
      look="quiet"
      icon={done ? "check" : "copy"}
      onClick={() => void copy().catch(failed)}
      label={label ?? msg("ui.copy")}
    >
      <span aria-live="polite">{done ? msg("ui.copied") : msg("ui.copy")}</span>
    </Button>
  );
}

/** copyText also works without a secure context, as on a hub in a private network. */
async function copyText(text: string) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (!copied) throw new Error("the browser blocked access to the clipboard");
}
