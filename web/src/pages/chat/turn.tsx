import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { InlineAsk } from "../../features/approvals/inline";
import { isPending } from "../../features/approvals/requests";
import { Markdown } from "../../shared/content";
import { formatTime, short } from "../../shared/i18n/format";
import { language } from "../../shared/i18n/language";
import { findMsg, msg } from "../../shared/i18n/messages";
import { Copy, failed, Icon, Tag } from "../../shared/ui";
import type { Version } from "./branches";
import { Fold } from "./disclosure";
import { EditMessage } from "./editmessage";
import { AboutLine, CompactedLine, RetentionLine, LoadedLine, Quiet, UnloadedLine } from "./noticelines";
import { duration, messageTitle } from "./phrases";
import { MessageImages } from "./thumbs";
import { CallLine } from "./toolcall";
import { elapsed } from "./toolcalltext";
import type { Item, Turn, Words } from "./transcript";
import { type TurnActions, TurnButton, Versions } from "./turnactions";

interface TurnProps {
  session: string;
  turn: Turn;
  number: number;
  /** Whether it is the last one on its branch. */
  newest: boolean;
  versions?: readonly Version[];
  actions?: TurnActions;
}

/** MemoTurn draws a turn, again only after a change. */
export function MemoTurn(props: TurnProps) {
  const { session, turn, number, newest, versions, actions } = props;
  return useMemo(
    () => <TurnView {...props} />,
    [session, turn, number, newest, versions?.map((v) => v.last).join(), actions, language.value],
  );
}

/** TurnView shows a message and the response. */
function TurnView({ session, turn, number, newest, versions, actions }: TurnProps) {
  const switcher = versions && actions && <Versions turn={turn} versions={versions} actions={actions} />;
  const over = turn.state !== "waiting" && turn.state !== "running";
  const same = versions?.every((v) => v.turn.text === turn.text && v.turn.skill === turn.skill);
  return (
    <article
      class={turn.kind === "message" ? `chat-turn is-${turn.state}` : "chat-turn command"}
      data-input={turn.input}
    >
      {turn.kind === "message" ? (
        <>
          <h2 class="visually-hidden">{msg("chat.turn", { n: number, text: messageTitle(turn).slice(0, 80) })}</h2>
          <MessageText session={session} turn={turn} over={over} switcher={!same && switcher} actions={actions} />
        </>
      ) : (
        <Command turn={turn} />
      )}
      {turn.items.map((item) => (
        <MemoItem key={item.key} item={item} />
      ))}
      <End turn={turn} />
      {turn.kind === "message" && over && (
        <Foot turn={turn} newest={newest} switcher={same && switcher} actions={actions} />
      )}
    </article>
  );
}

interface PartProps {
  turn: Turn;
  switcher: ComponentChildren;
  actions?: TurnActions;
}

interface MessageTextProps extends PartProps {
  session: string;
  /** Whether the turn is over. Until then the message has no buttons, but their place. */
  over: boolean;
}

/** MessageText shows the message as written, or edits it. */
function MessageText({ session, turn, over, switcher, actions }: MessageTextProps) {
  const [edited, setEdited] = useState(0);
  const said = useRef<HTMLDivElement>(null);
  const foot = useRef<HTMLDivElement>(null);
  const sent = useRef<boolean>(undefined);
  useLayoutEffect(() => {
    if (edited || sent.current === undefined) return;
    const next = sent.current ? said.current : foot.current?.querySelector<HTMLElement>("button:last-child");
    next?.focus();
  }, [edited]);
  const asked = actions?.edited.value === turn.input;
  useEffect(() => {
    if (!asked) return;
    setEdited(turn.input);
    actions.edited.value = 0;
  }, [asked]);
  const done = (wasSent: boolean) => {
    sent.current = wasSent;
    setEdited(0);
  };
  if (edited === turn.input && actions) return <EditMessage turn={turn} actions={actions} onDone={done} />;
  return (
    <>
      <div class="chat-said" title={formatTime(turn.said)} ref={said} tabIndex={-1}>
        {turn.skill && (
          <div class="small">
            <Icon name="library" size={14} /> {msg("chat.usedSkill", { name: turn.skill })}
          </div>
        )}
        {!!turn.images.length && <MessageImages session={session} images={turn.images} />}
        {turn.text && <div class="text">{turn.text}</div>}
      </div>
      {actions && (
        <div class="chat-said-foot" ref={foot}>
          {over && (
            <>
              {switcher}
              <TurnButton
                icon="compose"
                label={msg("chat.edit")}
                busy={actions.busy}
                onClick={() => setEdited(turn.input)}
              />
            </>
          )}
        </div>
      )}
    </>
  );
}

const tells = ["loaded", "unloaded", "kept", "compacted"];

/** Command shows a manual command. A load is shown by its own line. */
function Command({ turn }: { turn: Turn }) {
  const over = turn.state === "done" && (turn.kind === "branch" || turn.items.some((i) => tells.includes(i.type)));
  if (over) return null;
  const text =
    turn.kind === "load"
      ? msg("chat.loading", { name: turn.skill })
      : turn.kind === "unload"
        ? msg("chat.unloading", { name: turn.skill })
        : turn.kind === "branch"
          ? msg(turn.state === "failed" ? "chat.notSwitched" : "chat.switching")
          : msg("chat.compacting");
  return <Quiet icon={turn.kind === "compact" ? "file" : "library"}>{text}</Quiet>;
}

function MemoItem({ item }: { item: Item }) {
  return useMemo(() => <ItemView item={item} />, [item, language.value]);
}

function ItemView({ item }: { item: Item }) {
  switch (item.type) {
    case "answer":
      return <Answer item={item} />;
    case "thought":
      return (
        <Fold
          class="quiet"
          line={<span class="words">{item.open ? msg("chat.thinking") + "…" : msg("chat.thought")}</span>}
        >
          {() => <Markdown text={item.text} streaming={item.open} level={4} formulas />}
        </Fold>
      );
    case "call":
      return item.covered && item.state !== "running" ? null : <CallLine call={item} />;
    case "loaded":
      return <LoadedLine item={item} />;
    case "unloaded":
      return <UnloadedLine item={item} />;
    case "kept":
      return <RetentionLine item={item} />;
    case "ask":
      return <InlineAsk ask={item.ask} outcome={item.outcome} />;
    case "compacted":
      return <CompactedLine item={item} />;
    default:
      return <AboutLine item={item} />;
  }
}

function Answer({ item }: { item: Words }) {
  return (
    <div class="chat-answer" aria-busy={item.open} data-key={item.key} tabIndex={-1}>
      <Markdown text={item.text} streaming={item.open} level={3} breaks formulas previews />
      {item.stop && (
        <div class="note warn">{findMsg("chat.stops", item.stop) ?? msg("chat.stopped", { why: item.stop })}</div>
      )}
    </div>
  );
}

/** End shows how a turn ended, or its progress. */
function End({ turn }: { turn: Turn }) {
  switch (turn.state) {
    case "waiting":
      return (
        <div class="chat-end">
          <Tag>{msg("chat.waitsTurn")}</Tag>
        </div>
      );
    case "running":
      if (turn.items.some((i) => i.type === "ask" && isPending(i.ask)))
        return <p class="chat-end">{msg("chat.needsYou")}</p>;
      return turn.items.some((i) => "open" in i && i.open) ? null : <p class="chat-working">{msg("chat.working")}</p>;
    case "cancelled":
      return (
        <div class={turn.begun ? "row" : "chat-end row"}>
          <Tag look="warn">{turn.begun ? msg("chat.cancelled") : msg("chat.takenBack")}</Tag>
        </div>
      );
    case "failed":
      return (
        <div class="note bad">
          <strong>{msg("chat.failed")}</strong>
          <div>{turn.error}</div>
          <div class="muted small">{msg("chat.failedNext")}</div>
        </div>
      );
    default:
      return <Done turn={turn} />;
  }
}

function Done({ turn }: { turn: Turn }) {
  const problems = turn.loaded?.problems ?? [];
  return (
    <>
      {turn.state === "wait" && <Quiet icon="asks">{msg("chat.wait")}</Quiet>}
      {turn.kind === "load" && turn.loaded?.state === "failed" && (
        <div class="note bad">
          <strong>{msg("chat.notLoaded", { name: turn.skill })}</strong>
          {problems.map((p, i) => (
            <div key={i}>{p}</div>
          ))}
        </div>
      )}
    </>
  );
}

interface FootProps extends PartProps {
  newest: boolean;
}

/** Foot shows what a response cost, and what can be done with it. */
function Foot({ turn, newest, switcher, actions }: FootProps) {
  const answer = turn.items.findLast((i) => i.type === "answer");
  const seconds = elapsed(turn.begun, turn.ended);
  return (
    <footer class="chat-foot small muted">
      {switcher}
      {answer && "text" in answer && <Copy text={answer.text} label={msg("chat.copyMessage")} />}
      {actions && (
        <TurnButton icon="again" busy={actions.busy} onClick={() => void actions.retry(turn).catch(failed)}>
          {msg("chat.resend")}
        </TurnButton>
      )}
      {actions && !newest && turn.last > 0 && (
        <TurnButton icon="branch" busy={actions.busy} onClick={() => actions.continueAfter(turn)}>
          {msg("chat.continueHere")}
        </TurnButton>
      )}
      <span>
        {[
          turn.model,
          turn.usage &&
            msg("chat.took", {
              input: short(turn.usage.input + turn.usage.cache_read + turn.usage.cache_write),
              output: short(turn.usage.output),
            }),
          seconds !== undefined && seconds >= 0.1 && duration(seconds),
        ]
          .filter(Boolean)
          .join(" · ")}
      </span>
    </footer>
  );
}
