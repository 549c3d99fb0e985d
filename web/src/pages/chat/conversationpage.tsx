import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { ErrorBoundary } from "preact-iso";
import { useCommands } from "../../features/shortcuts/commands";
import { BackToDraft } from "../../features/skills/backtodraft";
import { away, Refusal } from "../../shared/api/client";
import { me } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { Button, Empty, failed, Icon, Problem, Tag, Waiting } from "../../shared/ui";
import { useTitle } from "../../shared/ui/page";
import { useActiveSkills } from "./activeskills";
import { agentTitle } from "./agentfield";
import { useBranch } from "./branches";
import { Composer } from "./composer";
import { useConversation } from "./conversation";
import { useDebounced } from "./debounced";
import type { Link } from "./eventstream";
import { choosing } from "./loadskill";
import { Messages } from "./messages";
import { useModels } from "./models";
import { Panel } from "./panel";
import { messageTitle } from "./phrases";
import { cancel, sendMessage, switchBranch } from "./send";
import { actions as loadActions, SessionMenu, TitleField } from "./sessionrow";
import { change, sessionToMove, sessionOf } from "./sessions";
import { isBusy, type Transcript, type Turn, runningTurn } from "./transcript";
import type { TurnActions } from "./turnactions";
import "./chat.css";

interface ConversationProps {
  id: string;
  /** The button that opens the list of conversations. */
  list: ComponentChildren;
  onPanel: () => void;
  panelOpen: boolean;
  /** Shows the panel beside or in front of the conversation. */
  beside: (panel: ComponentChildren) => ComponentChildren;
}

/** The turn after which the next message continues, as the user chose. */
interface Origin {
  turn: Turn;
  /** The input of that message, once it was accepted. It is shown when it arrives. */
  sent?: number;
}

/** ConversationView shows a conversation. */
export function ConversationView({ id, list, onPanel, panelOpen, beside }: ConversationProps) {
  const c = useConversation(id);
  const session = sessionOf(id);
  const transcript = c.transcript.value;
  const link = c.link.value;
  const at = useDebounced(c.ready.value ? transcript.changed : -1);
  const force = useActiveSkills(id, at);
  useTitle(session?.title || msg("chat.untitled"));
  const branch = useBranch(transcript);
  const [from, setFrom] = useState<Origin>();
  const onSent = (input: number) => setFrom((from) => from && { ...from, sent: input });
  useEffect(() => {
    if (transcript.turns.some((t) => t.input === from?.sent)) setFrom(undefined);
  }, [transcript.turns.length, from]);
  const actions = useActions(id, isBusy(transcript), (turn) => setFrom(turn && { turn }), onSent);
  const end = from ? branch.turns.findIndex((t) => t.input === from.turn.input) + 1 : 0;
  const turns = end ? branch.turns.slice(0, end) : branch.turns;
  const toBranch = async () => {
    if (from) await switchBranch(id, from.turn.last);
    setFrom(undefined);
  };
  const editLast = useEditLast(turns, actions);
  const stop = useCallback(() => cancel(id), [id]);
  const models = useModels(session && (session.agent ?? ""));
  if (link.state === "over" && link.problem?.status === 404) return <ConversationGone />;
  const theirs = session && me.value && session.owner !== me.value.user.id;
  return (
    <>
      <section class="chat-talk">
        <Head id={id} list={list} transcript={transcript} onPanel={onPanel} panelOpen={panelOpen} />
        <Connection link={link} />
        {c.ready.value || transcript.turns.length ? (
          <Messages
            transcript={transcript}
            turns={turns}
            versions={branch.versions}
            ready={c.ready.value}
            session={id}
            actions={theirs ? undefined : actions}
          />
        ) : (
          <div class="chat-scroll">
            <div class="chat-messages">
              <Waiting for={msg("chat.opening")} />
            </div>
          </div>
        )}
        <div class="chat-foot-area">
          {from && (
            <div class="note row keep" role="status">
              <span class="grow">{msg("chat.continuing", { text: messageTitle(from.turn).slice(0, 40) })}</span>
              <Button small onClick={() => setFrom(undefined)}>
                {msg("chat.stay")}
              </Button>
            </div>
          )}
          {session?.archived && !theirs && (
            <div class="note row keep">
              <span class="grow">{msg("chat.archivedNote")}</span>
              <Button small onClick={() => act((a) => a.archive(session))}>
                {msg("chat.unarchive")}
              </Button>
            </div>
          )}
          {theirs ? (
            <p class="small muted">{msg("chat.watching")}</p>
          ) : (
            <Composer
              id={id}
              busy={isBusy(transcript)}
              send={async (draft) => onSent(await sendMessage(id, draft, from?.turn.last))}
              onStop={runningTurn(transcript) || isBusy(transcript) ? stop : undefined}
              onEdit={editLast}
              loaded={(force.data ?? []).map((f) => f.skill.name)}
              offered={transcript.offered}
              models={models}
              model={session?.model}
              onModel={(model) => void change(id, { model }).catch(failed)}
            />
          )}
        </div>
      </section>
      {beside(at < 0 ? null : <Panel c={c} at={at} force={force} beforeLoad={toBranch} />)}
    </>
  );
}

/** act does something with a conversation, which is loaded ahead. */
const act = (run: (all: Awaited<ReturnType<typeof loadActions>>) => unknown) =>
  void loadActions().then(run).catch(failed);

/** useEditLast returns a function that edits the last message, if that is possible. */
function useEditLast(turns: readonly Turn[], actions: TurnActions) {
  const last = turns.findLast((turn) => turn.kind === "message");
  const over = last && last.state !== "waiting" && last.state !== "running";
  return over ? () => (actions.edited.value = last.input) : undefined;
}

/** useActions returns what the user can do with earlier turns. */
function useActions(
  id: string,
  busy: boolean,
  continueAfter: (turn?: Turn) => void,
  onSent: (input: number) => void,
): TurnActions {
  const edited = useSignal(0);
  return useMemo(() => {
    const send = async (turn: Turn, text: string, sent: Turn["images"]) => {
      const after = turn.last ? turn.parent : turn.after; // a turn without steps has no versions
      const images = sent.map((i) => ({ path: i.name!, sha256: i.ref }));
      onSent(await sendMessage(id, { text, skill: turn.skill || undefined, files: [], images }, after));
    };
    return {
      busy,
      edited,
      edit: send,
      retry: (turn) => send(turn, turn.text, turn.images),
      continueAfter,
      switchTo: async (step) => {
        await switchBranch(id, step);
        continueAfter(undefined);
      },
    };
  }, [id, busy]);
}

function Head({
  id,
  list,
  transcript,
  onPanel,
  panelOpen,
}: Omit<ConversationProps, "beside"> & { transcript: Transcript }) {
  const [renaming, setRenaming] = useState(false);
  const session = sessionOf(id);
  const mine = session?.owner === me.value?.user.id;
  useCommands([
    ...(session && mine
      ? [
          {
            text: msg("chat.loadByHand"),
            icon: "library" as const,
            run: () => (panelOpen || onPanel(), (choosing.value = id)),
          },
          { text: msg("chat.rename"), icon: "compose" as const, run: () => setRenaming(true) },
          {
            text: session.pinned ? msg("chat.unpin") : msg("chat.pin"),
            icon: "pin" as const,
            run: () => act((a) => a.pin(session)),
          },
          { text: msg("chat.move"), icon: "folder" as const, run: () => (sessionToMove.value = session) },
          {
            text: session.archived ? msg("chat.unarchive") : msg("chat.archive"),
            icon: "folder" as const,
            run: () => act((a) => a.archive(session)),
          },
        ]
      : []),
    {
      text: msg("chat.exportMarkdown"),
      icon: "download" as const,
      run: () => act((a) => void a.exportSession(id, "markdown")),
    },
    {
      text: msg("chat.exportLines"),
      icon: "download" as const,
      run: () => act((a) => void a.exportSession(id, "jsonl")),
    },
  ]);
  return (
    <header class="chat-head">
      {list}
      {renaming && session ? (
        <ErrorBoundary>
          <TitleField session={session} onDone={() => setRenaming(false)} />
        </ErrorBoundary>
      ) : (
        <h1 class="truncate" tabIndex={-1}>
          {session?.title || msg("chat.untitled")}
        </h1>
      )}
      {session?.agent && (
        <Tag title={session.agent}>
          <Icon name="agents" size={14} /> {agentTitle(session.agent)}
        </Tag>
      )}
      {session?.draft && (
        <BackToDraft session={id} name={session.draft}>
          <Tag look="warn">{msg("chat.draft", { name: session.draft })}</Tag>
        </BackToDraft>
      )}
      {isBusy(transcript) && <Tag look="accent">{msg("chat.busy")}</Tag>}
      <span class="push" />
      {session && <SessionMenu session={session} onRename={() => setRenaming(true)} />}
      {list && (
        <a class="button quiet small icon" href="/" aria-label={msg("chat.fresh")} title={msg("chat.fresh")}>
          <Icon name="plus" size={16} />
        </a>
      )}
      <Button
        small
        look="quiet"
        icon="library"
        aria-label={panelOpen ? msg("chat.closePanel") : msg("chat.openPanel")}
        aria-expanded={panelOpen}
        onClick={onPanel}
      >
        <span class="only-wide">{msg("chat.panel")}</span>
      </Button>
    </header>
  );
}

/** Connection says that the connection is lost, and why. */
function Connection({ link }: { link: Link }) {
  if (link.state === "over" && link.problem) {
    const { status, detail, next } = link.problem;
    return <Problem error={new Refusal({ status, code: "stream", title: detail, detail, next })} />;
  }
  const told = link.state === "again" && !away.value; // otherwise the shell says so
  return (
    <div class="chat-link small" role="status" hidden={!told}>
      {told && (
        <>
          {link.bye ? msg("chat.bye") : msg("chat.again")} {link.problem?.detail}
        </>
      )}
    </div>
  );
}

function ConversationGone() {
  return (
    <section class="chat-talk">
      <Empty
        title={msg("chat.gone")}
        actions={
          <a class="button primary" href="/">
            {msg("chat.toNew")}
          </a>
        }
      >
        {msg("chat.goneText")}
      </Empty>
    </section>
  );
}
