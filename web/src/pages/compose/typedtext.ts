import { useEffect, useState } from "preact/hooks";

/**
 * useTyped keeps the typed text of a field apart from its value: "a, " has the value ["a"] but must
 * not become "a" while the user types. A value that changes elsewhere replaces the text.
 */
export function useTyped<T>(
  value: T,
  show: (value: T) => string,
  read: (text: string) => T | undefined,
  put: (value: T) => void,
): [text: string, type: (text: string) => void, wrong: boolean] {
  const [typed, setTyped] = useState<string>();
  const now = JSON.stringify(value);
  const meant = typed === undefined ? undefined : read(typed);
  const ours = typed !== undefined && (meant === undefined || JSON.stringify(meant) === now);
  useEffect(() => {
    if (!ours) setTyped(undefined);
  }, [now]);
  const type = (text: string) => {
    setTyped(text);
    const next = read(text);
    if (next !== undefined) put(next);
  };
  return [ours ? typed : show(value), type, ours && meant === undefined];
}
