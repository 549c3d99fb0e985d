import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { type Asked, away } from "../../shared/api/client";
import { Shown } from "../../shared/ui";

/** Known shows loaded data. While the hub is unreachable it keeps the last data, then loads again. */
export function Known<T>({
  asked,
  waiting,
  children,
}: {
  asked: Asked<T>;
  waiting?: string;
  children: (data: T) => ComponentChildren;
}) {
  const gone = away.value;
  useEffect(() => {
    if (!gone && asked.error) void asked.again();
  }, [gone]);
  return (
    <Shown asked={gone ? { ...asked, error: undefined } : asked} waiting={waiting}>
      {children}
    </Shown>
  );
}
