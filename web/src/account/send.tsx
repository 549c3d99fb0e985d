import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../ui";

/** Sends a form by Enter or its button, once at a time, and keeps what was said against it. */
export function useSend(act: () => Promise<unknown>) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const send = async (e?: Event) => {
    e?.preventDefault();
    if (busy) return;
    setBusy(true);
    setError(undefined);
    try {
      await act();
    } catch (refused) {
      setError(refused);
    } finally {
      setBusy(false);
    }
  };
  return { send, busy, error };
}

/** The button that sends a form. */
export function Submit({ busy, disabled, children }: { busy: boolean; disabled?: boolean; children: ComponentChildren }) {
  return <Button type="submit" look="primary" disabled={disabled} aria-disabled={busy || undefined} aria-busy={busy || undefined}>{children}</Button>;
}
