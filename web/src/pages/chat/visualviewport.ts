import { useEffect } from "preact/hooks";

/**
 * useVisibleHeight sets a CSS property to the height above an on-screen keyboard, where the
 * keyboard covers the page.
 */
export function useVisibleHeight() {
  useEffect(() => {
    const seen = window.visualViewport;
    if (!seen) return;
    const root = document.documentElement;
    const set = () => {
      const covered = innerHeight - seen.height > 120 && seen.scale === 1;
      if (covered) root.style.setProperty("--chat-height", `${seen.height}px`);
      else root.style.removeProperty("--chat-height");
    };
    seen.addEventListener("resize", set);
    return () => {
      seen.removeEventListener("resize", set);
      root.style.removeProperty("--chat-height");
    };
  }, []);
}
