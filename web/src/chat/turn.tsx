import { useMemo } from "preact/hooks";
import { InlineAsk } from "../asks/inline";
import { Markdown } from "../content";
import { Button, Copy, Icon, Tag } from "../ui";
import { language, moment, short } from "../words";
import { CallLine } from "./callline";
import { took } from "./calls";
import { Fold } from "./fold";
import { AboutLine, CompactedLine, KeptLine, LoadedLine, Quiet, UnloadedLine } from "./lines";
import type { Item, Turn, Words } from "./transcript";
import { w } from "./words";

interface TurnProps {
  turn: Turn;
  number: number;
  /** Puts what was said back into the input. */
  onAgain?: (turn: Turn) => void;
}

/** A turn, drawn again only when something happened in it. */
export function KeptTurn({ turn, number, onAgain }: TurnProps) {
  return useMemo(() => <TurnView turn={turn} number={number} onAgain={onAgain} />, [turn, number, onAgain, language.value]);
}

/** What a person wanted, what was done, and what was answered. */
function TurnView({ turn, number, onAgain }: TurnProps) {
  const t = w();
  const name = turn.text || (turn.skill ? t.usedSkill(turn.skill) : "");
  return (
    <article class={turn.kind === "message" ? `chat-turn is-${turn.state}` : "chat-turn command"} data-input={turn.input}>
      {turn.kind === "message" ? (
        <>
          <h2 class="visually-hidden">{t.turn(number, name.slice(0, 80))}</h2>
          <Said turn={turn} />
        </>
      ) : (
        <Command turn={turn} />
      )}
      {turn.items.map((item) => <KeptItem key={item.key} item={item} />)}
      <End turn={turn} onAgain={onAgain} />
    </article>
  );
}

/** What the person said, as it was written. */
function Said({ turn }: { turn: Turn }) {
  const t = w();
  return (
    <div class="chat-said" title={moment(turn.said)}>
      {turn.skill && <div class="small"><Icon name="library" size={14} /> {t.usedSkill(turn.skill)}</div>}
      {turn.text && <div class="text">{turn.text}</div>}
    </div>
  );
}

const tells = ["loaded", "unloaded", "kept", "compacted"];

/** Something that was done by hand. What it loaded says so itself. */
function Command({ turn }: { turn: Turn }) {
  const t = w();
  const over = turn.state === "done" && turn.items.some((i) => tells.includes(i.type));
  if (over) return null;
  const text = turn.kind === "load" ? t.loading(turn.skill) : turn.kind === "unload" ? t.unloading(turn.skill) : t.compacting;
  return <Quiet icon={turn.kind === "compact" ? "file" : "library"}>{text}</Quiet>;
}

function KeptItem({ item }: { item: Item }) {
  return useMemo(() => <ItemView item={item} />, [item, language.value]);
}

function ItemView({ item }: { item: Item }) {
  switch (item.type) {
    case "answer":
      return <Answer item={item} />;
    case "thought":
      return <Fold class="quiet" line={<span class="words">{item.open ? w().thinking + "…" : w().thought}</span>}>{() => <Markdown text={item.text} streaming={item.open} level={4} />}</Fold>;
    case "call":
      return item.covered && item.state !== "running" ? null : <CallLine call={item} />;
    case "loaded":
      return <LoadedLine item={item} />;
    case "unloaded":
      return <UnloadedLine item={item} />;
    case "kept":
      return <KeptLine item={item} />;
    case "ask":
      return <InlineAsk ask={item.ask} outcome={item.outcome} />;
    case "compacted":
      return <CompactedLine item={item} />;
    default:
      return <AboutLine item={item} />;
  }
}

function Answer({ item }: { item: Words }) {
  const t = w();
  return (
    <div class="chat-answer" aria-busy={item.open}>
      <Markdown text={item.text} streaming={item.open} level={3} breaks />
      {item.stop && <div class="note warn">{t.stops[item.stop] ?? t.stopped(item.stop)}</div>}
    </div>
  );
}

/** How a turn ended, or what is going on. */
function End({ turn, onAgain }: Omit<TurnProps, "number">) {
  const t = w();
  const again = onAgain && turn.kind === "message" && <Button small look="quiet" icon="again" onClick={() => onAgain(turn)}>{t.resend}</Button>;
  switch (turn.state) {
    case "waiting":
      return <div class="chat-end"><Tag>{t.waitsTurn}</Tag></div>;
    case "running":
      return turn.items.some((i) => "open" in i && i.open) ? null : <p class="chat-working">{t.working}</p>;
    case "cancelled":
      return <div class={turn.begun ? "row" : "chat-end row"}><Tag look="warn">{turn.begun ? t.cancelled : t.takenBack}</Tag>{again}</div>;
    case "failed":
      return (
        <div class="note bad">
          <strong>{t.failed}</strong>
          <div>{turn.error}</div>
          <div class="muted small">{t.failedNext}</div>
          {again && <div>{again}</div>}
        </div>
      );
    default:
      return <Done turn={turn} />;
  }
}

function Done({ turn }: { turn: Turn }) {
  const t = w();
  const answer = turn.items.findLast((i) => i.type === "answer");
  const problems = turn.loaded?.problems ?? [];
  const seconds = took(turn.begun, turn.ended);
  return (
    <>
      {turn.state === "wait" && <Quiet icon="asks">{t.wait}</Quiet>}
      {turn.kind === "load" && turn.loaded?.state === "failed" && <div class="note bad"><strong>{t.notLoaded(turn.skill)}</strong>{problems.map((p, i) => <div key={i}>{p}</div>)}</div>}
      {turn.kind === "message" && (
        <footer class="chat-foot small muted">
          {answer && "text" in answer && <Copy text={answer.text} label={t.copyMessage} />}
          <span>
            {[turn.model, turn.usage && t.took(short(turn.usage.input + turn.usage.cache_read + turn.usage.cache_write), short(turn.usage.output)), seconds !== undefined && seconds >= 0.1 && t.seconds(seconds)].filter(Boolean).join(" · ")}
          </span>
        </footer>
      )}
    </>
  );
}
