import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { msg } from "../../shared/i18n/messages";
import { rename, type Session } from "./sessions";

/** TitleField edits the title of a conversation. */
export function TitleField({ session, onDone }: { session: Session; onDone: () => void }) {
  return (
    <NameField
      label={msg("chat.newTitle")}
      value={session.title}
      maxLength={300}
      save={(title) => rename(session.id, title)}
      onDone={onDone}
    />
  );
}

interface NameFieldProps {
  label: string;
  value: string;
  maxLength: number;
  save: (text: string) => Promise<unknown>;
  onDone: () => void;
}

/**
 * NameField edits a name in the list. Enter saves, Escape cancels. If the name is refused, the field stays open with
 * the error.
 */
export function NameField({ label, value, maxLength, save, onDone }: NameFieldProps) {
  const [text, setText] = useState(value);
  const [error, setError] = useState<Error>();
  const input = useRef<HTMLInputElement>(null);
  const over = useRef(false); // also while it is being saved
  const id = useId();
  useLayoutEffect(() => {
    const frame = requestAnimationFrame(() => {
      input.current?.focus(); // after the menu has returned the focus
      input.current?.select();
    });
    return () => cancelAnimationFrame(frame);
  }, []);
  const close = () => {
    over.current = true;
    const row = document.activeElement === input.current && input.current?.closest(".chat-row, .chat-head");
    onDone();
    if (row) requestAnimationFrame(() => row.querySelector<HTMLElement>('[aria-haspopup="menu"]')?.focus());
  };
  const keep = async () => {
    if (over.current) return;
    if (!text.trim() || text.trim() === value) return close();
    over.current = true;
    try {
      await save(text.trim());
      close();
    } catch (refused) {
      setError(refused as Error);
      over.current = false;
    }
  };
  return (
    <span class="chat-name grow">
      <input
        ref={input}
        class="input"
        value={text}
        maxLength={maxLength}
        aria-label={label}
        aria-invalid={!!error}
        aria-describedby={error && id}
        onInput={(e) => setText(e.currentTarget.value)}
        onBlur={(e) => document.activeElement !== e.currentTarget && void keep()} // not when the window loses the focus
        onKeyDown={(e) => {
          if (e.isComposing) return;
          if (e.key === "Enter") void keep();
          if (e.key !== "Escape") return;
          e.preventDefault();
          e.stopPropagation();
          if (!over.current) close(); // a name that is being saved may be refused
        }}
      />
      {error && (
        <span class="field-error" id={id} role="alert">
          {error.message}
        </span>
      )}
    </span>
  );
}
