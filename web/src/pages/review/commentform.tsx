import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { sendKeys } from "../../features/shortcuts/keys";
import { msg } from "../../shared/i18n/messages";
import { Button, failed } from "../../shared/ui";
import { useDiscussion } from "./discussion";

/** The maximum length of a comment, in characters. */
const longest = 4000;

interface CommentFormProps {
  label: string;
  button: string;
  /** The key of the draft. */
  draft: string;
  /** The text to change. */
  text?: string;
  send: (text: string) => Promise<void>;
  /** Called after the user closed the form. Without it, the form stays open. */
  onClose?: () => void;
}

/** CommentForm is a text area for a comment. Ctrl+Enter sends it, Escape closes it. */
export function CommentForm({ label, button, draft, text: before = "", send, onClose }: CommentFormProps) {
  const { drafts } = useDiscussion();
  const [text, setText] = useState(drafts.text(draft) ?? before);
  const [busy, setBusy] = useState(false);
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    if (drafts.isNew(draft)) area.current?.focus();
  }, [drafts.open.value]);
  const write = (text: string) => {
    drafts.keep(draft, text);
    setText(text);
  };
  const submit = async () => {
    if (busy || !text.trim()) return;
    setBusy(true);
    try {
      await send(text.trim());
      drafts.end(draft);
      setText("");
    } catch (error) {
      failed(error);
    } finally {
      setBusy(false);
    }
  };
  const close = () => {
    drafts.end(draft);
    onClose?.();
  };
  return (
    <form
      class="review-form stack tight"
      onSubmit={(e) => {
        e.preventDefault();
        void submit();
      }}
    >
      <label class="small" for={id}>
        {label}
      </label>
      <textarea
        id={id}
        ref={area}
        class="input"
        rows={3}
        maxLength={longest}
        value={text}
        readOnly={busy}
        aria-describedby={`${id}-hint`}
        onInput={(e) => write(e.currentTarget.value)}
        onKeyDown={(e) => {
          if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
            e.preventDefault();
            void submit();
          }
          if (e.key === "Escape" && onClose && text === before) {
            e.stopPropagation();
            close();
          }
        }}
      />
      <span class="hint small muted" id={`${id}-hint`}>
        {msg("review.commentHint", { keys: sendKeys })}
      </span>
      <div class="row">
        <Button small look="primary" type="submit" disabled={busy || !text.trim()}>
          {button}
        </Button>
        {onClose && (
          <Button small onClick={close}>
            {msg("review.cancel")}
          </Button>
        )}
      </div>
    </form>
  );
}
