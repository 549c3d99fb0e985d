import { msg } from "../i18n/messages";
import { Button } from "./button";
import { dismiss, toasts } from "./notify";

/** Toasts shows the messages. The shell has one. */
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
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
    </div>
  );
}
