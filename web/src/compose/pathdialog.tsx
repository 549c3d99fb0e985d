import { useState } from "preact/hooks";
import { Button, Dialog, TextField } from "../ui";
import { faultOf, type DraftFile } from "./files";
import { w } from "./words";
import type { Work } from "./work";

/** Asks for the path of a new file, or for another one of a file. */
export function PathDialog({ work, file, onClose, onDone }: { work: Work; file?: DraftFile; onClose: () => void; onDone: (path: string) => void }) {
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
    <Dialog title={file ? w().renameTitle(file.path) : w().addFile} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <TextField label={w().path} hint={w().pathHint} value={path} onText={setPath} error={tried && fault ? w().faults[fault] : undefined} autofocus spellcheck={false} autocomplete="off" />
        <div class="row"><Button look="primary" type="submit">{file ? w().rename : w().add}</Button></div>
      </form>
    </Dialog>
  );
}
