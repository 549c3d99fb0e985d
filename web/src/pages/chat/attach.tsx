import { useEffect, useRef } from "preact/hooks";
import { limits } from "../../shared/api/limits";
import { size } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Button, failed } from "../../shared/ui";
import { laterPart } from "../../shared/ui/lazypart";
import type { AttachedProps } from "./attached";

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

/** The list of the attached files, with their images. */
const useList = laterPart(() => import("./attached"));

/** Attached lists the files of a message. */
export function Attached(props: AttachedProps) {
  const list = useList(!!props.files.length);
  return list && props.files.length ? <list.AttachedList {...props} /> : null;
}

/** useFiles takes files that are dropped on the conversation around an element, or pasted outside of other fields. */
export function useFiles(inside: { current: HTMLElement | null }, onFiles: (files: File[]) => void) {
  const latest = useRef(onFiles);
  latest.current = onFiles;
  useEffect(() => {
    const form = inside.current!;
    const area = form.closest<HTMLElement>(".chat-talk") ?? form;
    const take = (files: Iterable<File>) => void fit(files).then((fitting) => latest.current(fitting), failed);
    const has = (e: DragEvent) => e.dataTransfer?.types.includes("Files");
    const over = (e: DragEvent) => {
      if (!has(e)) return;
      e.preventDefault();
      form.dataset.drop = msg("chat.drop");
    };
    const leave = (e: DragEvent) => {
      if (!area.contains(e.relatedTarget as Node | null)) delete form.dataset.drop;
    };
    const drop = (e: DragEvent) => {
      delete form.dataset.drop;
      if (!has(e)) return;
      e.preventDefault();
      take(e.dataTransfer!.files);
    };
    const paste = (e: ClipboardEvent) => {
      const files = [...(e.clipboardData?.files ?? [])];
      const target = e.target instanceof Element ? e.target : undefined;
      const elsewhere = !form.contains(target ?? null) && target?.closest("input, textarea, dialog, [contenteditable]");
      if (!files.length || elsewhere || e.clipboardData!.types.includes("text/plain")) return; // text from a document
      e.preventDefault();
      take(files.map(pasted));
    };
    area.addEventListener("dragover", over);
    area.addEventListener("dragleave", leave);
    area.addEventListener("drop", drop);
    document.addEventListener("paste", paste);
    return () => {
      area.removeEventListener("dragover", over);
      area.removeEventListener("dragleave", leave);
      area.removeEventListener("drop", drop);
      document.removeEventListener("paste", paste);
    };
  }, []);
}

/** pasted names a pasted picture by the time, because browsers give all of them the same name. */
function pasted(file: File): File {
  const [, end] = /^image(\.[a-z]+)$/.exec(file.name) ?? [];
  if (!end) return file;
  const time = new Date().toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
  return new File([file], `pasted-${time}${end}`, { type: file.type });
}
