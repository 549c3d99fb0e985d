import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ErrorBoundary, useLocation } from "preact-iso";
import { useShortcut } from "../../features/shortcuts/keys";
import { msg, withRest } from "../../shared/i18n/messages";
import { store, stored } from "../../shared/i18n/storage";
import { Button, Waiting } from "../../shared/ui";
import { laterPart, lazyPart, loadAhead } from "../../shared/ui/lazypart";
import { Drawer, useWide } from "./drawer";
import { SessionList } from "./sessionlist";
import { actions, TitleField } from "./sessionrow";
import { displayed, sessionToMove, useFreshSessions } from "./sessions";
import { Begin } from "./startpage";
import { useVisibleHeight } from "./visualviewport";

/** The open conversation. The start page does without its code. */
const useConversationPage = laterPart(() => import("./conversationpage"));

if (location.pathname.startsWith("/chat/")) void useConversationPage.load();

const MoveDialog = lazyPart(() => withRest(import("./movedialog")));

const key = "loadout.chat.panel";

/** Chat shows the list of conversations, the open conversation and its context. */
export default function Chat() {
  const { path, route } = useLocation();
  const id = /^\/chat\/([\w-]+)/.exec(path)?.[1] ?? "";
  const listBeside = useWide(1100);
  const panelBeside = useWide(1400);
  const [listOpen, setListOpen] = useState(false);
  const [panelOpen, setPanelOpen] = useState(() => panelBeside && stored(key) !== "closed");
  useFreshSessions();
  useVisibleHeight();
  const opened = useConversationPage(!!id);
  useEffect(() => loadAhead([useConversationPage.load, () => TitleField.preload(), actions]), []);
  useEffect(() => setListOpen(false), [path]);
  useEffect(() => setPanelOpen(panelBeside && stored(key) !== "closed"), [panelBeside]);
  const show = (open: boolean) => {
    setPanelOpen(open);
    if (panelBeside) store(key, open ? null : "closed");
  };
  useShortcut("panel", id ? () => show(!panelOpen) : undefined);
  useShortcut("next", () => step(1));
  useShortcut("previous", () => step(-1));
  const step = (by: number) => {
    const all = displayed();
    const at = all.findIndex((s) => s.id === id);
    const next = id ? at >= 0 && all[at + by] : all[0]; // of one that is not in the list yet, the next is unknown
    if (next) route(`/chat/${next.id}`);
  };
  const beside = (panel: ComponentChildren) => {
    if (!panelOpen) return null;
    if (panelBeside) return <div class="chat-beside end">{panel}</div>;
    return (
      <Drawer label={msg("chat.panel")} closeLabel={msg("chat.closePanel")} side="end" onClose={() => show(false)}>
        {panel}
      </Drawer>
    );
  };
  const list = listBeside ? null : (
    <Button
      look="quiet"
      icon="chat"
      label={msg("chat.openList")}
      aria-expanded={listOpen}
      onClick={() => setListOpen(true)}
    />
  );
  return (
    <div class="chat">
      {listBeside ? (
        <div class="chat-beside start">
          <SessionList open={id} />
        </div>
      ) : (
        listOpen && (
          <Drawer
            label={msg("chat.conversations")}
            closeLabel={msg("chat.closeList")}
            side="start"
            onClose={() => setListOpen(false)}
          >
            <SessionList open={id} onOpen={() => setListOpen(false)} />
          </Drawer>
        )
      )}
      {!id && <Begin list={list} />}
      {id && opened && (
        <opened.ConversationView
          key={id}
          id={id}
          list={list}
          onPanel={() => show(!panelOpen)}
          panelOpen={panelOpen}
          beside={beside}
        />
      )}
      {id && !opened && (
        <section class="chat-talk">
          <Waiting for={msg("chat.opening")} />
        </section>
      )}
      {sessionToMove.value && (
        <ErrorBoundary>
          <MoveDialog session={sessionToMove.value} onClose={() => (sessionToMove.value = undefined)} />
        </ErrorBoundary>
      )}
    </div>
  );
}
