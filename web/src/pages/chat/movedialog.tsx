import { useEffect, useMemo, useState } from "preact/hooks";
import { api, got, useLoad } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, Dialog, Problem, SelectField, TextField, Waiting } from "../../shared/ui";
import { keepFocus } from "./listfocus";
import { change, folders, refreshFolders, type Session } from "./sessions";

const fresh = "new";

/** MoveDialog moves a conversation into a folder, which may be a new one, or out of its folder. */
export default function MoveDialog({ session, onClose }: { session: Session; onClose: () => void }) {
  const load = useLoad(refreshFolders, []);
  const focus = useMemo(() => keepFocus(session.id), []);
  useEffect(() => focus, []);
  const all = folders.value;
  const has = (id: string | undefined) => id === "" || id === fresh || all?.some((f) => f.id === id);
  const [chosen, setFolder] = useState<string>();
  const folder = [chosen, session.folder].find((id) => id !== undefined && has(id)) ?? all?.[0]?.id ?? fresh;
  const [name, setName] = useState("");
  const [error, setError] = useState<unknown>();
  const move = async () => {
    setError(undefined);
    try {
      let to = folder;
      if (folder === fresh) {
        to = (await got(api.POST("/api/v1/folders", { body: { name: name.trim() } }))).id;
        await refreshFolders();
        setFolder(to); // a second attempt creates no other one
      }
      await change(session.id, { folder: to });
      onClose();
    } catch (refused) {
      setError(refused); // shown here, because the page behind a dialog cannot be read
      void refreshFolders().catch(() => {}); // another tab may have deleted the folder
    }
  };
  return (
    <Dialog
      title={msg("folders.move")}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{msg("ui.cancel")}</Button>
          <ActionButton look="primary" act={move} disabled={!all || (folder === fresh && !name.trim())}>
            {msg("folders.moveNow")}
          </ActionButton>
        </>
      }
    >
      {all ? (
        <SelectField
          label={msg("folders.folder")}
          value={folder}
          onText={setFolder}
          options={[
            ["", msg("folders.none")],
            ...all.map((f): [string, string] => [f.id, f.name]),
            [fresh, msg("folders.fresh")],
          ]}
        />
      ) : load.error ? (
        <Problem error={load.error} again={() => void load.again()} />
      ) : (
        <Waiting />
      )}
      {all && folder === fresh && (
        <TextField
          label={msg("folders.name")}
          value={name}
          onText={setName}
          maxLength={60}
          onKeyDown={(e: KeyboardEvent) => {
            if (e.key === "Enter" && !e.isComposing && name.trim()) void move();
          }}
        />
      )}
      {error !== undefined && <Problem error={error} />}
    </Dialog>
  );
}
