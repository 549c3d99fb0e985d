import { useEffect } from "preact/hooks";
import { useLocation } from "preact-iso";
import { newestWith } from "./branches";
import type { Transcript, Turn } from "./transcript";

const markFor = 4000; // milliseconds

/** A message in the address that is not on the current branch. */
interface Elsewhere {
  /** The last step of the branch with the message. */
  last: number;
  /** Removes the message from the address. */
  drop: () => void;
}

/**
 * useTarget scrolls to the step in the address, as from a search, and marks its message for a moment. Then the step
 * leaves the address, so that the same address leads to the message again. If the message is not on the current
 * branch, useTarget returns where it is.
 */
export function useTarget(
  box: { current: HTMLElement | null },
  session: string,
  transcript: Transcript,
  turns: readonly Turn[],
  ready: boolean,
  showTurns: (newest: number) => void,
  leaveEnd: () => void,
): Elsewhere | undefined {
  const { path, query, route } = useLocation();
  const step = path === `/chat/${session}` ? Number(query.step) || 0 : 0;
  const drop = () => route(path, true);
  const at = ready && step ? turns.findIndex((t) => t.first && t.first <= step && step <= t.last) : -1;
  useEffect(() => {
    if (at < 0) return;
    showTurns(turns.length - at);
    const timer = setTimeout(() => {
      const message = box.current && elementOf(box.current, turns[at]!, step);
      if (!message) return;
      drop();
      leaveEnd(); // growing content would scroll the message away
      message.scrollIntoView({ block: "center" });
      message.focus({ preventScroll: true });
      message.classList.add("is-found");
      setTimeout(() => message.classList.remove("is-found"), markFor);
    }, 50); // until the turn is drawn
    return () => clearTimeout(timer);
  }, [at, step]);
  if (!ready || !step || at >= 0) return undefined;
  const last = newestWith(transcript, step);
  return last ? { last, drop } : undefined;
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
