import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface ScrollProps {
  label: string;
  class?: string;
  height?: string;
  children: ComponentChildren;
}

/** Scroll is a box that scrolls, also by keyboard, when its content does not fit. */
export function Scroll({ label, class: more, height, children }: ScrollProps) {
  const ref = useRef<HTMLDivElement>(null);
  const [over, setOver] = useState(false);
  useEffect(() => {
    const box = ref.current!;
    const look = () => setOver(box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1);
    const watch = new ResizeObserver(look);
    watch.observe(box);
    if (box.firstElementChild) watch.observe(box.firstElementChild);
    return () => watch.disconnect();
  }, []);
  const named = over ? { tabIndex: 0, role: "region" as const, "aria-label": label } : {};
  return (
    <div
      ref={ref}
      class={more ? `content-scroll ${more}` : "content-scroll"}
      style={height ? { maxHeight: height } : undefined}
      {...named}
    >
      <div class="content-within">{children}</div>
    </div>
  );
}
