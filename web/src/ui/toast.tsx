import { signal } from "@preact/signals";
import { Refusal } from "../api/client";
import { toldProblem } from "../told";
import { Button } from "./button";
import { w } from "./words";

interface Toast {
  id: number;
  text: string;
  next?: string;
  bad: boolean;
}

const toasts = signal<Toast[]>([]);
let last = 0;

function show(text: string, bad: boolean, next?: string) {
  const id = ++last;
  toasts.value = [...toasts.value.slice(-3), { id, text, bad, next }];
  setTimeout(() => dismiss(id), bad ? 15000 : 5000);
}

const dismiss = (id: number) => (toasts.value = toasts.value.filter((t) => t.id !== id));

/** Say shortly that something is done. */
export const done = (text: string) => show(text, false);

/** Say that something failed, with what can be done about it. What was broken off is no failure. */
export function failed(error: unknown) {
  if ((error as Error)?.name === "AbortError") return;
  show((error as Error)?.message || w().failed, true, error instanceof Refusal ? toldProblem(error.problem).next : undefined);
}

/** Where these are shown; the shell has one. */
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((t) => (
        <div key={t.id} class={t.bad ? "toast bad" : "toast"}>
          <div class="grow">
            {t.text}
            {t.next && <div class="muted">{w().next}{t.next}</div>}
          </div>
          <Button small look="quiet" icon="close" label={w().dismiss} onClick={() => dismiss(t.id)} />
        </div>
      ))}
    </div>
  );
}
