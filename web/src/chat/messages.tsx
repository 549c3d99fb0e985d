import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "../ui";
import { isBusy, type Transcript, type Turn } from "./transcript";
import { KeptTurn } from "./turn";
import { useStick } from "./stick";
import { w } from "./words";

const page = 30;

interface MessagesProps {
  transcript: Transcript;
  ready: boolean;
  onAgain?: (turn: Turn) => void;
}

/** All that was said, at its end, with more of the beginning as one goes up. */
export function Messages({ transcript, ready, onAgain }: MessagesProps) {
  const t = w();
  const [most, setMost] = useState(page);
  const box = useRef<HTMLDivElement>(null);
  const inside = useRef<HTMLDivElement>(null);
  const { away, toEnd } = useStick(box, inside);
  const all = transcript.turns;
  const from = Math.max(0, all.length - most);
  const grow = useEarlier(box, most, () => setMost(most + page));
  const last = all.at(-1)?.input;
  const mine = useRef(last);
  useEffect(() => {
    if (last !== mine.current) toEnd(); // what one says oneself is seen
    mine.current = last;
  }, [last]);
  return (
    <div class="chat-scroll" ref={box} role="region" aria-label={t.messages} tabIndex={0}>
      <div class="chat-messages" ref={inside}>
        {from > 0 && <div class="chat-earlier"><Button small onClick={grow}>{t.earlier}</Button></div>}
        {ready && !all.length && <p class="muted chat-silent">{t.silent}</p>}
        {all.slice(from).map((turn, i) => <KeptTurn key={turn.input} turn={turn} number={from + i + 1} onAgain={onAgain} />)}
      </div>
      <Spoken transcript={transcript} ready={ready} />
      {away && <div class="chat-newest"><Button small icon="down" onClick={toEnd}>{t.newest}</Button></div>}
    </div>
  );
}

/** Draws more at the top, and keeps what is read where it is. */
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

/** Tells who hears the page when an answer begins and what it came to. */
function Spoken({ transcript, ready }: { transcript: Transcript; ready: boolean }) {
  const t = w();
  const busy = isBusy(transcript);
  const was = useRef(false);
  const [text, setText] = useState("");
  useEffect(() => {
    if (!ready) return;
    const answer = transcript.turns.findLast((turn) => turn.items.length)?.items.findLast((i) => i.type === "answer");
    if (busy) setText(t.answering);
    else if (was.current) setText(`${t.answered}. ${answer && "text" in answer ? answer.text.slice(0, 1000) : ""}`);
    was.current = busy;
  }, [busy, ready]);
  return <div class="visually-hidden" role="status">{text}</div>;
}
