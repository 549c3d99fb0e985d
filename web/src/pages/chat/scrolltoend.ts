import { useCallback, useEffect, useRef, useState } from "preact/hooks";

type Ref = { current: HTMLElement | null };

const near = 60;

/** useStick keeps the end of growing content in view until the user scrolls up. */
export function useStick(box: Ref, inside: Ref): { away: boolean; toEnd: () => void; leaveEnd: () => void } {
  const stuck = useRef(true);
  const [away, setAway] = useState(false);
  const toEnd = useCallback(() => {
    stuck.current = true;
    setAway(false);
    const b = box.current;
    if (b) b.scrollTop = b.scrollHeight;
  }, []);
  const leaveEnd = useCallback(() => (stuck.current = false), []);
  useEffect(() => {
    const b = box.current!;
    let top = b.scrollTop;
    const scrolled = () => {
      const left = b.scrollHeight - b.scrollTop - b.clientHeight;
      if (left < near) stuck.current = true;
      else if (b.scrollTop < top - 2) stuck.current = false; // growth moves the end, not the top
      top = b.scrollTop;
      setAway(!stuck.current && left >= near);
    };
    const grown = new ResizeObserver(() => {
      if (stuck.current) b.scrollTop = b.scrollHeight;
      else scrolled();
    });
    b.addEventListener("scroll", scrolled, { passive: true });
    grown.observe(inside.current!);
    grown.observe(b);
    return () => {
      b.removeEventListener("scroll", scrolled);
      grown.disconnect();
    };
  }, []);
  return { away, toEnd, leaveEnd };
}
