import type { ComponentChildren } from "preact";
import { useCallback, useState } from "preact/hooks";
import { away, Refusal } from "../api/client";
import { me } from "../api/me";
import { BackToDraft } from "../compose/back";
import { useTitle } from "../shell/page";
import { Button, Empty, Icon, Problem, Tag, Waiting } from "../ui";
import { agentTitle } from "./agents";
import { Composer } from "./composer";
import { useConversation } from "./conversation";
import { keepDraft } from "./drafts";
import { useInForce } from "./inforce";
import { SessionMenu, TitleField } from "./listrow";
import { Messages } from "./messages";
import { Panel, useSettled } from "./panel";
import { cancel, say } from "./send";
import { sessionOf } from "./sessions";
import { isBusy, type Transcript, type Turn, underWay } from "./transcript";
import type { Link } from "./watch";
import { w } from "./words";

interface TalkProps {
  id: string;
  /** What opens the list of conversations, where it is not shown. */
  list: ComponentChildren;
  onPanel: () => void;
  panelOpen: boolean;
  /** Puts what is loaded beside the conversation, or in front of it. */
  beside: (panel: ComponentChildren) => ComponentChildren;
}

/** A conversation. */
export function Talk({ id, list, onPanel, panelOpen, beside }: TalkProps) {
  const t = w();
  const c = useConversation(id);
  const session = sessionOf(id);
  const transcript = c.transcript.value;
  const link = c.link.value;
  const at = useSettled(c.ready.value ? transcript.changed : -1);
  const force = useInForce(id, at);
  useTitle(session?.title || t.untitled);
  const again = useCallback((turn: Turn) => keepDraft(id, { text: turn.text, skill: turn.skill || undefined, files: [] }), [id]);
  const stop = useCallback(() => cancel(id), [id]);
  if (link.state === "over" && link.problem?.status === 404) return <Gone />;
  const theirs = session && me.value && session.owner !== me.value.user.id;
  return (
    <>
      <section class="chat-talk">
        <Head id={id} list={list} transcript={transcript} onPanel={onPanel} panelOpen={panelOpen} />
        <Connection link={link} />
        {c.ready.value || transcript.turns.length ? <Messages transcript={transcript} ready={c.ready.value} onAgain={theirs ? undefined : again} /> : <div class="chat-scroll"><div class="chat-messages"><Waiting for={t.opening} /></div></div>}
        <div class="chat-foot-area">
          {theirs ? <p class="small muted">{t.watching}</p> : <Composer id={id} busy={isBusy(transcript)} send={(draft) => say(id, draft)} onStop={underWay(transcript) || isBusy(transcript) ? stop : undefined} loaded={(force.data ?? []).map((f) => f.skill.name)} offered={transcript.offered} />}
        </div>
      </section>
      {beside(at < 0 ? null : <Panel c={c} at={at} force={force} />)}
    </>
  );
}

function Head({ id, list, transcript, onPanel, panelOpen }: Omit<TalkProps, "beside"> & { transcript: Transcript }) {
  const t = w();
  const [renaming, setRenaming] = useState(false);
  const session = sessionOf(id);
  return (
    <header class="chat-head">
      {list}
      {renaming && session ? <TitleField session={session} onDone={() => setRenaming(false)} /> : <h1 class="truncate" tabIndex={-1}>{session?.title || t.untitled}</h1>}
      {session?.agent && <Tag title={session.agent}><Icon name="agents" size={14} /> {agentTitle(session.agent)}</Tag>}
      {session?.draft && <BackToDraft session={id} name={session.draft}><Tag look="warn">{t.draft(session.draft)}</Tag></BackToDraft>}
      {isBusy(transcript) && <Tag look="accent">{t.busy}</Tag>}
      <span class="push" />
      {session && <SessionMenu session={session} onRename={() => setRenaming(true)} />}
      {list && <a class="button quiet small icon" href="/" aria-label={t.fresh} title={t.fresh}><Icon name="plus" size={16} /></a>}
      <Button small look="quiet" icon="library" aria-label={panelOpen ? t.closePanel : t.openPanel} aria-expanded={panelOpen} onClick={onPanel}><span class="only-wide">{t.panel}</span></Button>
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
  const told = link.state === "again" && !away.value; // else the shell says it
  return (
    <div class="chat-link small" role="status" hidden={!told}>
      {told && <>{link.bye ? t.bye : t.again} {link.problem?.detail}</>}
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
