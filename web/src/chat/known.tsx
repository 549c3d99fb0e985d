import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { type Asked, away } from "../api/client";
import { Shown } from "../ui";

/** What was asked for. While the hub is away what was known last stays, as the shell says; then it is asked again. */
export function Known<T>({ asked, waiting, children }: { asked: Asked<T>; waiting?: string; children: (data: T) => ComponentChildren }) {
  const gone = away.value;
  useEffect(() => {
    if (!gone && asked.error) void asked.again();
  }, [gone]);
  return <Shown asked={gone ? { ...asked, error: undefined } : asked} waiting={waiting}>{children}</Shown>;
}
