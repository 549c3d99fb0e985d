import { useState } from "preact/hooks";
import { msg } from "../../shared/i18n/messages";
import { AreaField, Button, Dialog } from "../../shared/ui";
import { readServers, type Entry } from "../servers/config";
import { addServers } from "./phrases";

/** Paste adds servers from the configuration of another client. */
export function Paste({
  taken,
  onAdd,
  onClose,
}: {
  taken: string[];
  onAdd: (entries: Entry[]) => void;
  onClose: () => void;
}) {
  const [text, setText] = useState("");
  const { entries, error } = read(text, msg("agents.pasteShape"));
  const replaced = entries.filter((e) => taken.includes(e.name)).map((e) => e.name);
  const add = () => {
    onAdd(entries);
    onClose();
  };
  return (
    <Dialog
      title={msg("agents.pasteTitle")}
      onClose={onClose}
      wide
      actions={
        <>
          <Button onClick={onClose}>{msg("agents.cancel")}</Button>
          <Button look="primary" disabled={!entries.length} onClick={add}>
            {addServers(entries.length)}
          </Button>
        </>
      }
    >
      <p>{msg("agents.pasteSays")}</p>
      <AreaField
        label={msg("agents.pasteLabel")}
        class="mono"
        rows={12}
        value={text}
        onText={setText}
        error={text.trim() ? error : undefined}
        placeholder={'{"mcpServers": {"search": {"url": "https://mcp.example.com/mcp"}}}'}
      />
      {replaced.length > 0 && <p class="note warn">{msg("agents.replaces", { names: replaced.join(", ") })}</p>}
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
