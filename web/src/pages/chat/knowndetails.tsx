import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { type Load, away } from "../../shared/api/client";
import { Shown } from "../../shared/ui";

/** Known shows loaded data. While the hub is unreachable it keeps the last data, then loads again. */
export function Known<T>({
  load,
  waiting,
  children,
}: {
  load: Load<T>;
  waiting?: string;
  children: (data: T) => ComponentChildren;
}) {
  const offline = away.value;
  useEffect(() => {
    if (!offline && load.error) void load.again();
  }, [offline]);
  return (
    <Shown asked={offline ? { ...load, error: undefined } : load} waiting={waiting}>
      {children}
    </Shown>
  );
}
