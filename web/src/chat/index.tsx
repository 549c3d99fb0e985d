import { useLocation } from "preact-iso";
import { useEffect, useState } from "preact/hooks";
import { Button } from "../ui";
import { store, stored } from "../words";
import { Begin } from "./begin";
import type { Conversation } from "./conversation";
import { Drawer, useWide } from "./drawer";
import { SessionList } from "./list";
import { Panel } from "./panel";
import { useFreshSessions } from "./sessions";
import { Talk } from "./talk";
import { useVisibleHeight } from "./visible";
import { w } from "./words";
import "./chat.css";

const key = "loadout.chat.panel";

/** Conversations: the list, the one that is open, and what is loaded in it. */
export default function Chat() {
  const t = w();
  const { path } = useLocation();
  const id = /^\/chat\/([\w-]+)/.exec(path)?.[1] ?? "";
  const listBeside = useWide(1100);
  const panelBeside = useWide(1400);
  const [listOpen, setListOpen] = useState(false);
  const [panelOpen, setPanelOpen] = useState(() => panelBeside && stored(key) !== "closed");
  useFreshSessions();
  useVisibleHeight();
  useEffect(() => setListOpen(false), [path]);
  useEffect(() => setPanelOpen(panelBeside && stored(key) !== "closed"), [panelBeside]);
  const show = (open: boolean) => {
    setPanelOpen(open);
    if (panelBeside) store(key, open ? null : "closed");
  };
  const panel = (c: Conversation) => {
    if (!panelOpen) return null;
    if (panelBeside) return <aside class="chat-beside end"><Panel c={c} /></aside>;
    return <Drawer label={t.panel} closeLabel={t.closePanel} side="end" onClose={() => show(false)}><Panel c={c} /></Drawer>;
  };
  return (
    <div class="chat">
      {listBeside ? (
        <aside class="chat-beside start"><SessionList open={id} /></aside>
      ) : (
        <>
          <div class="chat-list-button"><Button small look="quiet" icon="menu" aria-expanded={listOpen} onClick={() => setListOpen(true)}>{t.conversations}</Button>{id && <a class="button quiet small push" href="/">{t.fresh}</a>}</div>
          {listOpen && <Drawer label={t.conversations} closeLabel={t.closeList} side="start" onClose={() => setListOpen(false)}><SessionList open={id} onOpen={() => setListOpen(false)} /></Drawer>}
        </>
      )}
      {id ? <Talk key={id} id={id} onPanel={() => show(!panelOpen)} panelOpen={panelOpen} panel={panel} /> : <Begin />}
    </div>
  );
}
