import { useState } from "preact/hooks";
import { readServers, type Entry } from "../servers/config";
import { AreaField, Button, Dialog } from "../ui";
import { w } from "./words";

/** Takes servers from the configuration of another client. */
export function Paste({ taken, onAdd, onClose }: { taken: string[]; onAdd: (entries: Entry[]) => void; onClose: () => void }) {
  const t = w();
  const [text, setText] = useState("");
  const { entries, error } = read(text, t.pasteShape);
  const replaced = entries.filter((e) => taken.includes(e.name)).map((e) => e.name);
  const add = () => {
    onAdd(entries);
    onClose();
  };
  return (
    <Dialog title={t.pasteTitle} onClose={onClose} wide actions={<><Button onClick={onClose}>{t.cancel}</Button><Button look="primary" disabled={!entries.length} onClick={add}>{t.takeServers(entries.length)}</Button></>}>
      <p>{t.pasteSays}</p>
      <AreaField label={t.pasteLabel} class="mono" rows={12} value={text} onText={setText} error={text.trim() ? error : undefined} placeholder={'{"mcpServers": {"search": {"url": "https://mcp.example.com/mcp"}}}'} />
      {replaced.length > 0 && <p class="note warn">{t.replaces(replaced.join(", "))}</p>}
    </Dialog>
  );
}

function read(text: string, shape: string): { entries: Entry[]; error?: string } {
  try {
    const entries = readServers(JSON.parse(text))?.filter((e) => e.config);
    return entries?.length ? { entries } : { entries: [], error: shape };
  } catch (failure) {
    return { entries: [], error: (failure as Error).message };
  }
}
