import { useRef } from "preact/hooks";
import { limits } from "../api/limits";
import { Button, Icon, failed } from "../ui";
import { size } from "../words";
import { w } from "./words";

/** The files that may be kept; what is too large is said. */
async function fit(files: Iterable<File>): Promise<File[]> {
  const all = [...files]; // a list of a field is emptied with it
  const most = (await limits()).session_file;
  for (const f of all) if (f.size > most) failed(new Error(w().tooLarge(f.name, size(most))));
  return all.filter((f) => f.size <= most);
}

/** Files together, each with a name of its own: pasted pictures are all called the same. */
export function together(files: File[], more: File[]): File[] {
  const out = [...files];
  for (const f of more) {
    const [, stem = f.name, end = ""] = /^(.+?)(\.[^.]*)?$/.exec(f.name) ?? [];
    let name = f.name;
    for (let n = 2; out.some((o) => o.name === name); n++) name = `${stem}-${n}${end}`;
    out.push(name === f.name ? f : new File([f], name, { type: f.type }));
  }
  return out;
}

/** The button that adds files. */
export function Attach({ onFiles, disabled }: { onFiles: (files: File[]) => void; disabled?: boolean }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button look="quiet" icon="upload" label={w().attach} disabled={disabled} onClick={() => input.current!.click()} />
      <input ref={input} type="file" multiple hidden aria-label={w().attach} onChange={(e) => {
        void fit(e.currentTarget.files ?? []).then(onFiles, failed);
        e.currentTarget.value = "";
      }} />
    </>
  );
}

/** The files that go with a message. */
export function Attached({ files, onRemove }: { files: File[]; onRemove: (f: File) => void }) {
  const t = w();
  if (!files.length) return null;
  return (
    <ul class="chat-attached" aria-label={t.attached}>
      {files.map((f) => (
        <li key={f.name}>
          <Icon name="file" size={14} /> <span class="truncate">{f.name}</span> <span class="muted nowrap">{size(f.size)}</span>
          <Button small look="quiet" icon="close" label={t.noFile(f.name)} onClick={() => onRemove(f)} />
        </li>
      ))}
    </ul>
  );
}

/** Lets files be dropped and pasted on what it is spread on. */
export function takeFiles(onFiles: (files: File[]) => void) {
  const has = (e: DragEvent) => e.dataTransfer?.types.includes("Files");
  return {
    onDragOver: (e: DragEvent & { currentTarget: HTMLElement }) => {
      if (!has(e)) return;
      e.preventDefault();
      e.currentTarget.dataset.drop = w().drop;
    },
    onDragLeave: (e: DragEvent & { currentTarget: HTMLElement }) => {
      if (!e.currentTarget.contains(e.relatedTarget as Node | null)) delete e.currentTarget.dataset.drop;
    },
    onDrop: (e: DragEvent & { currentTarget: HTMLElement }) => {
      delete e.currentTarget.dataset.drop;
      if (!has(e)) return;
      e.preventDefault();
      void fit(e.dataTransfer!.files).then(onFiles, failed);
    },
    onPaste: (e: ClipboardEvent) => {
      const files = [...(e.clipboardData?.files ?? [])];
      if (!files.length) return;
      e.preventDefault();
      void fit(files).then(onFiles, failed);
    },
  };
}
