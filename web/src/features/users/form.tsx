import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Refusal } from "../../shared/api/client";
import { Button } from "../../shared/ui";

/**
 * useSend sends a form once at a time and keeps its errors. `fault("name")` returns the error of a field
 * of the body or the path. `error` is set only for errors outside of `fields`.
 */
export function useSend(act: () => Promise<unknown>, ...fields: string[]) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const send = async (e?: Event) => {
    e?.preventDefault();
    const form = e?.currentTarget as HTMLElement | undefined;
    if (busy) return;
    setBusy(true);
    setError(undefined);
    try {
      await act();
    } catch (refused) {
      setError(refused);
      requestAnimationFrame(() => form?.querySelector<HTMLElement>("[aria-invalid]")?.focus());
    } finally {
      setBusy(false);
    }
  };
  const faults = error instanceof Refusal ? (error.problem.errors ?? []) : [];
  const isAt = (f: (typeof faults)[number], field: string) =>
    f.where === `body.${field}` || f.where === `path.${field}`;
  const fault = (field: string) =>
    faults
      .filter((f) => isAt(f, field))
      .map((f) => f.message)
      .join("; ") || undefined;
  const said = faults.length > 0 && faults.every((f) => fields.some((field) => isAt(f, field)));
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
