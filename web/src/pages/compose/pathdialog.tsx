import { useState } from "preact/hooks";
import { findMsg, msg } from "../../shared/i18n/messages";
import { Button, Dialog, TextField } from "../../shared/ui";
import type { Work } from "./draftstate";
import { faultOf, type DraftFile } from "./files";

/** PathDialog asks for the path of a new or renamed file. */
export function PathDialog({
  work,
  file,
  onClose,
  onDone,
}: {
  work: Work;
  file?: DraftFile;
  onClose: () => void;
  onDone: (path: string) => void;
}) {
  const [path, setPath] = useState(file?.path ?? "references/");
  const [tried, setTried] = useState(false);
  const others = work.files.filter((f) => f !== file);
  const fault = faultOf(path.trim(), others);
  const submit = (e: Event) => {
    e.preventDefault();
    setTried(true);
    if (fault) return;
    const to = path.trim();
    work.change(() => [...others, file ? { ...file, path: to } : { path: to, text: "" }]);
    onClose();
    onDone(to);
  };
  return (
    <Dialog title={file ? msg("compose.renameTitle", { path: file.path }) : msg("compose.addFile")} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <TextField
          label={msg("compose.path")}
          hint={msg("compose.pathHint")}
          value={path}
          onText={setPath}
          error={tried && fault ? findMsg("compose.faults", fault) : undefined}
          autofocus
          spellcheck={false}
          autocomplete="off"
        />
        <div class="row">
          <Button look="primary" type="submit">
            {file ? msg("compose.rename") : msg("compose.add")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
