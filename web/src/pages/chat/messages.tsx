import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { msg } from "../../shared/i18n/messages";
import { Button } from "../../shared/ui";
import type { Branch } from "./branches";
import { useStick } from "./scrolltoend";
import { isBusy, type Transcript, type Turn } from "./transcript";
import { MemoTurn } from "./turn";
import type { TurnActions } from "./turnactions";

const page = 30;

interface MessagesProps extends Branch {
  transcript: Transcript;
  ready: boolean;
  actions?: TurnActions;
}

/** Messages shows the newest messages, and earlier ones when scrolled up. */
export function Messages({ transcript, turns: all, versions, ready, actions }: MessagesProps) {
  const [most, setMost] = useState(page);
  const box = useRef<HTMLDivElement>(null);
  const inside = useRef<HTMLDivElement>(null);
  const { away, toEnd } = useStick(box, inside);
  const from = Math.max(0, all.length - most);
  const grow = useEarlier(box, most, () => setMost(most + page));
  const last = transcript.turns.findLast((turn) => turn.kind !== "branch")?.input;
  const mine = useRef(last);
  useEffect(() => {
    if (last !== mine.current) toEnd(); // the user's own message must be visible
    mine.current = last;
  }, [last]);
  return (
    <div class="chat-scroll" ref={box} role="region" aria-label={msg("chat.messages")} tabIndex={0}>
      <div class="chat-messages" ref={inside}>
        {from > 0 && (
          <div class="chat-earlier">
            <Button small onClick={grow}>
              {msg("chat.earlier")}
            </Button>
          </div>
        )}
        {ready && !all.length && <p class="muted chat-silent">{msg("chat.silent")}</p>}
        {all.slice(from).map((turn, i) => (
          // By position, so that the buttons that switch versions keep the focus.
          <MemoTurn
            key={from + i}
            turn={turn}
            number={from + i + 1}
            newest={from + i === all.length - 1}
            versions={versions.get(turn.input)}
            actions={actions}
          />
        ))}
      </div>
      <Spoken turns={all} busy={isBusy(transcript)} ready={ready} />
      {away && (
        <div class="chat-newest">
          <Button small icon="down" onClick={toEnd}>
            {msg("chat.newest")}
          </Button>
        </div>
      )}
    </div>
  );
}

/** useEarlier shows earlier messages and keeps the scroll position. */
function useEarlier(box: { current: HTMLDivElement | null }, most: number, grow: () => void): () => void {
  const before = useRef<number | undefined>(undefined);
  useLayoutEffect(() => {
    const b = box.current;
    if (!b || before.current === undefined) return;
    b.scrollTop = b.scrollHeight - before.current;
    before.current = undefined;
  }, [most]);
  return () => {
    const b = box.current!;
    before.current = b.scrollHeight - b.scrollTop;
    grow();
  };
}

/** Spoken announces the start and the end of a response to screen readers. */
function Spoken({ turns, busy, ready }: { turns: readonly Turn[]; busy: boolean; ready: boolean }) {
  const was = useRef(false);
  const [text, setText] = useState("");
  useEffect(() => {
    if (!ready) return;
    const answer = turns.findLast((turn) => turn.items.length)?.items.findLast((i) => i.type === "answer");
    if (busy) setText(msg("chat.answering"));
    else if (was.current)
      setText(`${msg("chat.answered")}. ${answer && "text" in answer ? answer.text.slice(0, 1000) : ""}`);
    was.current = busy;
  }, [busy, ready]);
  return (
    <div class="visually-hidden" role="status">
      {text}
    </div>
  );
}
