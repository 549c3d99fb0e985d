import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { msg } from "../../shared/i18n/messages";
import { Button, failed, Icon } from "../../shared/ui";
import { useGrow } from "./growingtext";
import type { Turn } from "./transcript";
import type { TurnActions } from "./turnactions";

interface EditMessageProps {
  turn: Turn;
  actions: TurnActions;
  onDone: (sent: boolean) => void;
}

/** EditMessage edits the text of a message in its place. Enter sends it, and Escape leaves. */
export function EditMessage({ turn, actions, onDone }: EditMessageProps) {
  const area = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState(turn.text);
  const [images, setImages] = useState(turn.images);
  const [sending, setSending] = useState(false);
  const off = sending || actions.busy || !(text.trim() || turn.skill || images.length);
  useGrow(area, text);
  useLayoutEffect(() => {
    area.current!.focus();
    area.current!.setSelectionRange(turn.text.length, turn.text.length);
  }, []);
  const send = async () => {
    if (off) return;
    setSending(true);
    try {
      await actions.edit(turn, text.trim(), images);
      onDone(true);
    } catch (error) {
      failed(error);
      setSending(false);
    }
  };
  const key = (e: KeyboardEvent) => {
    if (e.isComposing || e.keyCode === 229) return; // the key belongs to an input method, such as for Chinese
    if (e.key === "Escape") onDone(false);
    else if (e.key === "Enter" && !e.shiftKey && !e.altKey) void send();
    else return;
    e.preventDefault();
  };
  return (
    <form
      class="chat-edit"
      onSubmit={(e) => {
        e.preventDefault();
        void send();
      }}
    >
      {!!images.length && (
        <ul class="chat-attached" aria-label={msg("chat.attached")}>
          {images.map((i) => (
            <li key={i}>
              <Icon name="file" size={14} /> <span class="truncate">{i.name ?? msg("chat.image")}</span>
              <Button
                small
                look="quiet"
                icon="close"
                label={msg("chat.noFile", { name: i.name ?? msg("chat.image") })}
                disabled={sending}
                onClick={() => (setImages(images.filter((x) => x !== i)), area.current!.focus())}
              />
            </li>
          ))}
        </ul>
      )}
      <textarea
        ref={area}
        class="chat-input"
        rows={1}
        aria-label={msg("chat.editMessage")}
        value={text}
        readOnly={sending}
        maxLength={200_000}
        onInput={(e) => setText(e.currentTarget.value)}
        onKeyDown={key}
      />
      <div class="row">
        <span class="small muted grow">{actions.busy ? msg("chat.afterResponse") : msg("chat.editHint")}</span>
        <Button small onClick={() => onDone(false)}>
          {msg("ui.cancel")}
        </Button>
        <Button small look="primary" type="submit" aria-disabled={off || undefined} aria-busy={sending}>
          {msg("chat.send")}
        </Button>
      </div>
    </form>
  );
}
