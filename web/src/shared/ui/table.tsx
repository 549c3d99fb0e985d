import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/** TableWrap makes a wide table scroll, also by keyboard. */
export function TableWrap({ label, children }: { label: string; children: ComponentChildren }) {
  const ref = useRef<HTMLDivElement>(null);
  const [over, setOver] = useState(false);
  useEffect(() => {
    const frame = ref.current!;
    const seen = new ResizeObserver(() => setOver(frame.scrollWidth > frame.clientWidth));
    seen.observe(frame);
    if (frame.firstElementChild) seen.observe(frame.firstElementChild);
    return () => seen.disconnect();
  }, []);
  return (
    <div ref={ref} class="table-wrap" {...(over ? { role: "region", tabIndex: 0, "aria-label": label } : {})}>
      {children}
    </div>
  );
}
