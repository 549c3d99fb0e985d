import { useEffect, useState } from "preact/hooks";

/**
 * What somebody types in a field, next to what it stands for: "a, " is the list of a, and
 * must not become "a" under the hands. When the value changes from elsewhere, the text
 * is that of the value.
 */
export function useTyped<T>(value: T, show: (value: T) => string, read: (text: string) => T | undefined, put: (value: T) => void): [text: string, type: (text: string) => void, wrong: boolean] {
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
