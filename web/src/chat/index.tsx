import type { ComponentChildren } from "preact";
import { useLocation } from "preact-iso";
import { useEffect, useState } from "preact/hooks";
import { Button } from "../ui";
import { store, stored } from "../words";
import { Begin } from "./begin";
import { Drawer, useWide } from "./drawer";
import { SessionList } from "./list";
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
  const beside = (panel: ComponentChildren) => {
    if (!panelOpen) return null;
    if (panelBeside) return <div class="chat-beside end">{panel}</div>;
    return <Drawer label={t.panel} closeLabel={t.closePanel} side="end" onClose={() => show(false)}>{panel}</Drawer>;
  };
  const list = listBeside ? null : <Button look="quiet" icon="chat" label={t.openList} aria-expanded={listOpen} onClick={() => setListOpen(true)} />;
  return (
    <div class="chat">
      {listBeside ? (
        <div class="chat-beside start"><SessionList open={id} /></div>
      ) : (
        listOpen && <Drawer label={t.conversations} closeLabel={t.closeList} side="start" onClose={() => setListOpen(false)}><SessionList open={id} onOpen={() => setListOpen(false)} /></Drawer>
      )}
      {id ? <Talk key={id} id={id} list={list} onPanel={() => show(!panelOpen)} panelOpen={panelOpen} beside={beside} /> : <Begin list={list} />}
    </div>
  );
}
