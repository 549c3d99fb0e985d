import { useEffect, useRef } from "preact/hooks";
import { useLocation } from "preact-iso";
import { newestWith } from "./branches";
import type { Transcript, Turn } from "./transcript";

const markFor = 4000; // milliseconds

/**
 * useTarget scrolls to the step in the address, as from a search, and marks its message for a moment. If
 * the message is not on the current branch, it returns the last step of the branch with the message.
 */
export function useTarget(
  box: { current: HTMLElement | null },
  session: string,
  transcript: Transcript,
  turns: readonly Turn[],
  ready: boolean,
  showTurns: (newest: number) => void,
): number | undefined {
  const { path, query } = useLocation();
  const step = path === `/chat/${session}` ? Number(query.step) || 0 : 0;
  const found = useRef(0);
  const at = ready && step ? turns.findIndex((t) => t.first && t.first <= step && step <= t.last) : -1;
  useEffect(() => {
    if (at < 0 || found.current === step) return;
    showTurns(turns.length - at);
    const timer = setTimeout(() => {
      const message = box.current && elementOf(box.current, turns[at]!, step);
      if (!message) return;
      found.current = step;
      message.scrollIntoView({ block: "center" });
      message.focus({ preventScroll: true });
      message.classList.add("is-found");
      setTimeout(() => message.classList.remove("is-found"), markFor);
    }, 50); // until the turn is drawn
    return () => clearTimeout(timer);
  }, [at, step]);
  if (!ready || !step || at >= 0) return undefined;
  return newestWith(transcript, step) || undefined;
}

/** elementOf returns the element of the message with a step, or of its turn. */
function elementOf(box: HTMLElement, turn: Turn, step: number): HTMLElement | null {
  const event = turn.events[step - turn.first] ?? Infinity;
  const article = box.querySelector<HTMLElement>(`[data-input="${turn.input}"]`);
  const answer = turn.items.findLast((i) => i.type === "answer" && i.key <= event);
  const before = turn.items.some((i) => i.type === "answer" && i.key <= event);
  return (
    (before && answer && article?.querySelector<HTMLElement>(`[data-key="${answer.key}"]`)) ||
    article?.querySelector<HTMLElement>(".chat-said") ||
    null
  );
}
