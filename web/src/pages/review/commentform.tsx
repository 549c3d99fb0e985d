import { useEffect, useId, useRef, useState } from "preact/hooks";
import { msg } from "../../shared/i18n/messages";
import { Button, failed } from "../../shared/ui";

/** The maximum length of a comment, in characters. */
const longest = 4000;

interface CommentFormProps {
  label: string;
  button: string;
  /** The text to change. */
  text?: string;
  send: (text: string) => Promise<void>;
  /** Without it, the form stays open. */
  cancel?: () => void;
}

/** CommentForm is a text area for a comment. Ctrl+Enter sends it, Escape closes it. */
export function CommentForm({ label, button, text: before = "", send, cancel }: CommentFormProps) {
  const [text, setText] = useState(before);
  const [busy, setBusy] = useState(false);
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (cancel) area.current?.focus();
  }, []);
  const submit = async () => {
    if (busy || !text.trim()) return;
    setBusy(true);
    try {
      await send(text.trim());
      setText("");
    } catch (error) {
      failed(error);
    } finally {
      setBusy(false);
    }
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
        aria-describedby={`${id}-hint`}
        onInput={(e) => setText(e.currentTarget.value)}
        onKeyDown={(e) => {
          if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
            e.preventDefault();
            void submit();
          }
          if (e.key === "Escape" && cancel && text === before) {
            e.stopPropagation();
            cancel();
          }
        }}
      />
      <span class="hint small muted" id={`${id}-hint`}>
        {msg("review.commentHint")}
      </span>
      <div class="row">
        <Button small look="primary" type="submit" disabled={busy || !text.trim()}>
          {button}
        </Button>
        {cancel && (
          <Button small onClick={cancel}>
            {msg("review.cancel")}
          </Button>
        )}
      </div>
    </form>
  );
}
