import { useEffect, useRef } from "preact/hooks";
import { msg } from "../../shared/i18n/messages";
import { Button } from "../../shared/ui";
import { laterPart } from "../../shared/ui/lazypart";
import type { AttachedProps } from "./attached";

/** readFiles returns the files that can be attached, and reports the others. Pictures are prepared for models. */
async function readFiles(files: Iterable<File>, pasted?: boolean, asTheyAre?: boolean): Promise<File[]> {
  const all = [...files]; // clearing the input also empties its list
  const { readAttachments } = await import("./attachment");
  return readAttachments(all, pasted, asTheyAre);
}

interface AttachProps {
  onFiles: (files: Promise<File[]>) => void;
  disabled?: boolean;
  /** Whether the files are for tools and scripts, not for a message. */
  asTheyAre?: boolean;
}

/** Attach is the button to attach files. */
export function Attach({ onFiles, disabled, asTheyAre }: AttachProps) {
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
          onFiles(readFiles(e.currentTarget.files ?? [], false, asTheyAre));
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
export function useFiles(inside: { current: HTMLElement | null }, onFiles: (files: Promise<File[]>) => void) {
  const latest = useRef(onFiles);
  latest.current = onFiles;
  useEffect(() => {
    const form = inside.current!;
    const area = form.closest<HTMLElement>(".chat-talk") ?? form;
    const take = (files: Iterable<File>, pasted?: boolean) => latest.current(readFiles(files, pasted));
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
      take(files, true);
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
