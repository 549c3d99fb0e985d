import { useRef } from "preact/hooks";
import { limits } from "../../shared/api/limits";
import { size } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Button, Icon, failed } from "../../shared/ui";

/** fit returns the files within the size limit, and reports the others. */
async function fit(files: Iterable<File>): Promise<File[]> {
  const all = [...files]; // clearing the input also empties its list
  const most = (await limits()).session_file;
  for (const f of all) if (f.size > most) failed(new Error(msg("chat.tooLarge", { name: f.name, most: size(most) })));
  return all.filter((f) => f.size <= most);
}

/** together merges files and makes their names unique. Pasted pictures all have the same name. */
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

/** Attach is the button to attach files. */
export function Attach({ onFiles, disabled }: { onFiles: (files: File[]) => void; disabled?: boolean }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button
        look="quiet"
        icon="upload"
        label={msg("chat.attach")}
        disabled={disabled}
        onClick={() => input.current!.click()}
      />
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={msg("chat.attach")}
        onChange={(e) => {
          void fit(e.currentTarget.files ?? []).then(onFiles, failed);
          e.currentTarget.value = "";
        }}
      />
    </>
  );
}

/** Attached lists the files of a message. */
export function Attached({
  files,
  disabled,
  onRemove,
}: {
  files: File[];
  disabled: boolean;
  onRemove: (f: File) => void;
}) {
  if (!files.length) return null;
  return (
    <ul class="chat-attached" aria-label={msg("chat.attached")}>
      {files.map((f) => (
        <li key={f.name}>
          <Icon name="file" size={14} /> <span class="truncate">{f.name}</span>{" "}
          <span class="muted nowrap">{size(f.size)}</span>
          <Button
            small
            look="quiet"
            icon="close"
            label={msg("chat.noFile", { name: f.name })}
            disabled={disabled}
            onClick={() => onRemove(f)}
          />
        </li>
      ))}
    </ul>
  );
}

/** takeFiles returns handlers for dropped and pasted files. */
export function takeFiles(onFiles: (files: File[]) => void) {
  const has = (e: DragEvent) => e.dataTransfer?.types.includes("Files");
  return {
    onDragOver: (e: DragEvent & { currentTarget: HTMLElement }) => {
      if (!has(e)) return;
      e.preventDefault();
      e.currentTarget.dataset.drop = msg("chat.drop");
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
