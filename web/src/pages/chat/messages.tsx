import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { title } from "../../features/approvals/phrases";
import { isPending } from "../../features/approvals/requests";
import { keyText, singleKeys } from "../../features/shortcuts/keys";
import { msg } from "../../shared/i18n/messages";
import { Button, failed } from "../../shared/ui";
import type { Branch } from "./branches";
import { useStick } from "./scrolltoend";
import { useTarget } from "./target";
import { isBusy, type Transcript, type Turn } from "./transcript";
import { MemoTurn } from "./turn";
import type { TurnActions } from "./turnactions";

const page = 30;
const first = 6; // turns that are drawn at once and fill a screen; the others of the first page follow

interface MessagesProps extends Branch {
  transcript: Transcript;
  ready: boolean;
  session: string;
  actions?: TurnActions;
}

/** Messages shows the newest messages, and earlier ones when scrolled up. */
export function Messages({ transcript, turns: all, versions, ready, session, actions }: MessagesProps) {
  const [most, setMost] = useState(first);
  const box = useRef<HTMLDivElement>(null);
  const inside = useRef<HTMLDivElement>(null);
  const { away, toEnd, leaveEnd } = useStick(box, inside);
  const showTurns = (turns: number) => setMost((n) => Math.max(n, turns));
  const lost = useTarget(box, session, transcript, all, ready, showTurns, leaveEnd);
  const from = Math.max(0, all.length - most);
  const showEarlier = useEarlier(box, most, setMost);
  useEffect(() => {
    if (!ready || most >= page) return;
    const timer = setTimeout(() => showEarlier(page)); // after the first turns are drawn
    return () => clearTimeout(timer);
  }, [ready, most]);
  const shown = lost !== undefined && actions;
  const last = transcript.turns.findLast((turn) => turn.kind !== "branch")?.input;
  const mine = useRef(last);
  useEffect(() => {
    if (last !== mine.current) toEnd(); // the user's own message must be visible
    mine.current = last;
  }, [last]);
  return (
    <div class="chat-scroll" ref={box} role="region" aria-label={msg("chat.messages")} tabIndex={0}>
      <div class="chat-messages" ref={inside}>
        {from > 0 && most >= page && (
          <div class="chat-earlier">
            <Button small onClick={() => showEarlier(most + page)}>
              {msg("chat.earlier")}
            </Button>
          </div>
        )}
        {ready && !all.length && <p class="muted chat-silent">{msg("chat.silent")}</p>}
        {all.slice(from).map((turn, i) => (
          // By position, so that the buttons that switch versions keep the focus.
          <MemoTurn
            key={from + i}
            session={session}
            turn={turn}
            number={from + i + 1}
            newest={from + i === all.length - 1}
            versions={versions.get(turn.input)}
            actions={actions}
          />
        ))}
      </div>
      {shown && (
        <div class="note row keep chat-elsewhere" role="status">
          <span class="grow">{msg("chat.elsewhere")}</span>
          <Button
            small
            aria-disabled={actions.busy || undefined}
            onClick={() => actions.busy || void actions.switchTo(lost.last).catch(failed)}
          >
            {msg("chat.showVersion")}
          </Button>
          <Button small look="quiet" icon="close" label={msg("ui.dismiss")} onClick={lost.drop} />
        </div>
      )}
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

/** useEarlier returns a function that shows so many turns and keeps the scroll position. */
function useEarlier(box: { current: HTMLDivElement | null }, most: number, setMost: (most: number) => void) {
  const before = useRef<number | undefined>(undefined);
  useLayoutEffect(() => {
    const b = box.current;
    if (!b || before.current === undefined) return;
    b.scrollTop = b.scrollHeight - before.current;
    before.current = undefined;
  }, [most]);
  return (turns: number) => {
    const b = box.current!;
    before.current = b.scrollHeight - b.scrollTop;
    setMost(turns);
  };
}

/** Spoken announces the start and the end of a response to screen readers. */
function Spoken({ turns, busy, ready }: { turns: readonly Turn[]; busy: boolean; ready: boolean }) {
  const was = useRef(false);
  const [text, setText] = useState("");
  const item = turns.at(-1)?.items.findLast((i) => i.type === "ask" && isPending(i.ask));
  const ask = item?.type === "ask" ? item.ask : undefined;
  useEffect(() => {
    if (!ready) return;
    const answer = turns.findLast((turn) => turn.items.length)?.items.findLast((i) => i.type === "answer");
    if (ask)
      setText(
        ask.kind === "approval" && singleKeys.value
          ? msg("approvals.spoken", {
              title: title(ask),
              go: keyText("request"),
              allow: keyText("allow"),
              decline: keyText("decline"),
            })
          : msg("approvals.spokenPlain", { title: title(ask) }),
      );
    else if (busy) setText(msg("chat.answering"));
    else if (was.current)
      setText(`${msg("chat.answered")}. ${answer && "text" in answer ? answer.text.slice(0, 1000) : ""}`);
    was.current = busy;
  }, [busy, ready, ask?.id]);
  return (
    <div class="visually-hidden" role="status">
      {text}
    </div>
  );
}
