import { useCallback, useState } from "preact/hooks";
import { me } from "../api/me";
import { useTitle } from "../shell/page";
import { Button, Empty, Icon, Problem, Tag, Waiting } from "../ui";
import { Refusal } from "../api/client";
import { agentTitle } from "./agents";
import { Composer } from "./composer";
import { type Conversation, useConversation } from "./conversation";
import { keepDraft } from "./drafts";
import { SessionMenu, TitleField } from "./listrow";
import { Messages } from "./messages";
import { cancel, say } from "./send";
import { sessionOf } from "./sessions";
import { isBusy, type Transcript, type Turn, underWay } from "./transcript";
import type { Link } from "./watch";
import { w } from "./words";

interface TalkProps {
  id: string;
  onPanel: () => void;
  panelOpen: boolean;
  /** What is beside the conversation. */
  panel: (c: Conversation) => preact.ComponentChildren;
}

/** A conversation. */
export function Talk({ id, onPanel, panelOpen, panel }: TalkProps) {
  const t = w();
  const c = useConversation(id);
  const session = sessionOf(id);
  const transcript = c.transcript.value;
  const link = c.link.value;
  useTitle(session?.title || t.untitled);
  const again = useCallback((turn: Turn) => keepDraft(id, { text: turn.text, skill: turn.skill || undefined, files: [] }), [id]);
  const stop = useCallback(() => cancel(id), [id]);
  if (link.state === "over" && link.problem?.status === 404) return <Gone />;
  const theirs = session && me.value && session.owner !== me.value.user.id;
  return (
    <>
      <section class="chat-talk">
        <Head id={id} transcript={transcript} onPanel={onPanel} panelOpen={panelOpen} />
        <Connection link={link} />
        {c.ready.value || transcript.turns.length ? <Messages transcript={transcript} ready={c.ready.value} onAgain={theirs ? undefined : again} /> : <div class="chat-scroll"><div class="chat-messages"><Waiting for={t.opening} /></div></div>}
        <div class="chat-foot-area">
          {theirs ? <p class="small muted">{t.watching}</p> : <Composer id={id} busy={isBusy(transcript)} send={(draft) => say(id, draft)} onStop={underWay(transcript) || isBusy(transcript) ? stop : undefined} loaded={loadedNames(transcript)} offered={transcript.offered} />}
        </div>
      </section>
      {panel(c)}
    </>
  );
}

/** Skills that were loaded lately, which need no suggestion. */
function loadedNames(t: Transcript): string[] {
  return t.turns.slice(-5).flatMap((turn) => turn.items.flatMap((i) => (i.type === "loaded" ? [i.load.skill.name] : [])));
}

function Head({ id, transcript, onPanel, panelOpen }: { id: string; transcript: Transcript; onPanel: () => void; panelOpen: boolean }) {
  const t = w();
  const [renaming, setRenaming] = useState(false);
  const session = sessionOf(id);
  return (
    <header class="chat-head">
      {renaming && session ? <TitleField session={session} onDone={() => setRenaming(false)} /> : <h1 class="truncate" tabIndex={-1}>{session?.title || t.untitled}</h1>}
      {session?.agent && <Tag title={session.agent}><Icon name="agents" size={14} /> {agentTitle(session.agent)}</Tag>}
      {isBusy(transcript) && <Tag look="accent">{t.busy}</Tag>}
      <span class="push" />
      {session && <SessionMenu session={session} onRename={() => setRenaming(true)} />}
      <Button small look="quiet" icon="library" aria-expanded={panelOpen} title={panelOpen ? t.closePanel : t.openPanel} onClick={onPanel}>{t.panel}</Button>
    </header>
  );
}

/** Says while the hub is not heard, and why. */
function Connection({ link }: { link: Link }) {
  const t = w();
  if (link.state === "over" && link.problem) {
    const { status, detail, next } = link.problem;
    return <Problem error={new Refusal({ status, code: "stream", title: detail, detail, next })} />;
  }
  return (
    <div class="chat-link small" role="status" hidden={link.state !== "again"}>
      {link.state === "again" && <>{link.bye ? t.bye : t.again} {link.problem?.detail}</>}
    </div>
  );
}

function Gone() {
  const t = w();
  return (
    <section class="chat-talk">
      <Empty title={t.gone} actions={<a class="button primary" href="/">{t.toNew}</a>}>{t.goneText}</Empty>
    </section>
  );
}
