import { render } from "preact";
import { useEffect } from "preact/hooks";
import { msg } from "../i18n/messages";
import { Button } from "./button";
import { modals } from "./modal";
import { dismiss, toasts } from "./notify";

/**
 * Toasts shows the messages. The shell has one. While a modal dialog is open, they are in it, because everything else
 * is behind it, cannot be used, and is not announced.
 */
export function Toasts() {
  useEffect(() => {
    const box = document.createElement("div");
    box.className = "toasts";
    box.setAttribute("role", "status");
    box.setAttribute("aria-live", "polite");
    render(<List />, box);
    const stop = modals.subscribe((open) => (open.at(-1) ?? document.body).append(box));
    return () => {
      stop();
      render(null, box);
      box.remove();
    };
  }, []);
  return null;
}

const List = () => (
  <>
    {toasts.value.map((t) => (
      <div key={t.id} class={t.bad ? "toast bad" : "toast"}>
        <div class="grow">
          {t.text}
          {t.next && (
            <div class="muted">
              {msg("ui.next")}
              {t.next}
            </div>
          )}
        </div>
        <Button small look="quiet" icon="close" label={msg("ui.dismiss")} onClick={() => dismiss(t.id)} />
      </div>
    ))}
  </>
);
