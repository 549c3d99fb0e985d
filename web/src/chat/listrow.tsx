import { useLocation } from "preact-iso";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { done, failed, Menu, MenuItem, Tag, useConfirm } from "../ui";
import { forget } from "./conversation";
import { remove, rename, type Session } from "./sessions";
import { w } from "./words";

/** A conversation in the list: its title, whether it is at work, and what can be done with it. */
export function SessionRow({ session, here, onOpen }: { session: Session; here: boolean; onOpen?: () => void }) {
  const t = w();
  const [renaming, setRenaming] = useState(false);
  return (
    <li class={here ? "chat-row here" : "chat-row"}>
      {renaming ? (
        <TitleField session={session} onDone={() => setRenaming(false)} />
      ) : (
        <>
          <a class="grow truncate" href={`/chat/${session.id}`} aria-current={here ? "page" : undefined} title={session.title} onClick={onOpen}>{session.title || t.untitled}</a>
          {session.busy && <Tag look="accent">{t.busy}</Tag>}
          <SessionMenu session={session} onRename={() => setRenaming(true)} />
        </>
      )}
    </li>
  );
}

/** What can be done with a conversation. */
export function SessionMenu({ session, onRename, place }: { session: Session; onRename: () => void; place?: "start" }) {
  const t = w();
  const { path, route } = useLocation();
  const confirm = useConfirm();
  const title = session.title || t.untitled;
  const save = (format: string) => `/api/v1/sessions/${session.id}/export?format=${format}`;
  const drop = async () => {
    await remove(session.id);
    forget(session.id);
    done(t.removed);
    if (path === `/chat/${session.id}`) route("/", true);
  };
  return (
    <>
      <Menu small label={t.actions(title)} place={place}>
        <MenuItem onClick={onRename}>{t.rename}</MenuItem>
        <MenuItem onClick={() => download(save("markdown"))}>{t.exportMarkdown}</MenuItem>
        <MenuItem onClick={() => download(save("jsonl"))}>{t.exportLines}</MenuItem>
        <MenuItem danger onClick={() => confirm.ask({ title: t.removeTitle, children: t.removeText(title), yes: t.remove, danger: true, act: drop })}>{t.remove}</MenuItem>
      </Menu>
      {confirm.open}
    </>
  );
}

/** Has the browser save what is at an address; the hub says what it is called. */
function download(href: string) {
  const a = document.createElement("a");
  a.href = href;
  a.download = "export"; // else the page would go there
  document.body.append(a);
  a.click();
  a.remove();
}

/** A title that is being changed, in its place: Enter keeps it, Escape leaves it as it was. */
export function TitleField({ session, onDone }: { session: Session; onDone: () => void }) {
  const [text, setText] = useState(session.title);
  const input = useRef<HTMLInputElement>(null);
  const over = useRef(false);
  useLayoutEffect(() => {
    const frame = requestAnimationFrame(() => {
      input.current?.focus(); // after the menu gave the focus back to its button
      input.current?.select();
    });
    return () => cancelAnimationFrame(frame);
  }, []);
  const keep = () => {
    if (over.current) return;
    over.current = true;
    onDone();
    if (text.trim() && text.trim() !== session.title) void rename(session.id, text.trim()).catch(failed);
  };
  return (
    <input
      ref={input}
      class="input"
      value={text}
      maxLength={300}
      aria-label={w().newTitle}
      onInput={(e) => setText(e.currentTarget.value)}
      onBlur={keep}
      onKeyDown={(e) => {
        if (e.isComposing) return;
        if (e.key === "Enter") keep();
        if (e.key !== "Escape") return;
        e.preventDefault();
        e.stopPropagation();
        over.current = true;
        onDone();
      }}
    />
  );
}
