import { signal } from "@preact/signals";
import { Refusal } from "../api/client";
import { msg } from "../i18n/messages";
import { translateProblem } from "../servertext";

export interface Toast {
  id: number;
  text: string;
  next?: string;
  bad: boolean;
}

export const toasts = signal<Toast[]>([]);
let last = 0;

function show(text: string, bad: boolean, next?: string) {
  const id = ++last;
  const others = toasts.value.filter((t) => t.text !== text); // a repeated message is shown once
  toasts.value = [...others.slice(-3), { id, text, bad, next }];
  setTimeout(() => dismiss(id), bad ? 15000 : 5000);
}

export const dismiss = (id: number) => (toasts.value = toasts.value.filter((t) => t.id !== id));

/** done shows a short success message. */
export const done = (text: string) => show(text, false);

/** failed shows an error with the next step. A cancelled request is no error. */
export function failed(error: unknown) {
  if ((error as Error)?.name === "AbortError") return;
  show(
    (error as Error)?.message || msg("ui.failed"),
    true,
    error instanceof Refusal ? translateProblem(error.problem).next : undefined,
  );
}
