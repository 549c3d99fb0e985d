import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Refusal } from "../../shared/api/client";
import { Button } from "../../shared/ui";

/**
 * useSend sends a form once at a time and keeps its errors. `fault("name")` returns the error of a
 * body field. `error` is set only for errors outside of `fields`.
 */
export function useSend(act: () => Promise<unknown>, ...fields: string[]) {
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
  const faults = error instanceof Refusal ? (error.problem.errors ?? []) : [];
  const fault = (field: string) =>
    faults
      .filter((f) => f.where === `body.${field}`)
      .map((f) => f.message)
      .join("; ") || undefined;
  const said = faults.length > 0 && faults.every((f) => fields.some((field) => f.where === `body.${field}`));
  return { send, busy, error: said ? undefined : error, fault };
}

/** Submit is the submit button of a form. */
export function Submit({
  busy,
  disabled,
  children,
}: {
  busy: boolean;
  disabled?: boolean;
  children: ComponentChildren;
}) {
  return (
    <Button
      type="submit"
      look="primary"
      disabled={disabled}
      aria-disabled={busy || undefined}
      aria-busy={busy || undefined}
    >
      {children}
    </Button>
  );
}
