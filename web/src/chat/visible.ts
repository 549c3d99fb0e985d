import { useEffect } from "preact/hooks";

/** Tells the style how much of the window a keyboard on the screen leaves, where the browser lets it lie in front of the page. */
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
