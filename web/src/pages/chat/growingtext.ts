import { useEffect } from "preact/hooks";

/** useGrow fits the height of a text area to its content. CSS sets the maximum. */
export function useGrow(area: { current: HTMLTextAreaElement | null }, text: string) {
  useEffect(() => {
    const a = area.current;
    if (!a) return;
    a.style.height = "auto";
    a.style.height = `${a.scrollHeight}px`;
  }, [text]);
}
