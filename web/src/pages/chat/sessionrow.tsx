import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ErrorBoundary, useLocation } from "preact-iso";
import { me } from "../../shared/api/me";
import { msg, withRest } from "../../shared/i18n/messages";
import { done, failed, Menu, MenuItem, Tag, useConfirm } from "../../shared/ui";
import { lazyPart } from "../../shared/ui/lazypart";
import { archive, moving, pin, remove, rename, type Session } from "./sessions";
import { forget } from "./transcriptcache";

const ShareDialog = lazyPart(() => withRest(import("../../features/sharing/sharedialog")));

/** SessionRow is a conversation in the list, with its title, state and menu. */
export function SessionRow({ session, here, onOpen }: { session: Session; here: boolean; onOpen?: () => void }) {
  const [renaming, setRenaming] = useState(false);
  return (
    <li class={here ? "chat-row here" : "chat-row"}>
      {renaming ? (
        <TitleField session={session} onDone={() => setRenaming(false)} />
      ) : (
        <>
          <a
            class="grow truncate"
            href={`/chat/${session.id}`}
            aria-current={here ? "page" : undefined}
            title={session.title}
            onClick={onOpen}
          >
            {session.title || msg("chat.untitled")}
          </a>
          {session.busy && <Tag look="accent">{msg("chat.busy")}</Tag>}
          <SessionMenu session={session} onRename={() => setRenaming(true)} />
        </>
      )}
    </li>
  );
}

/** SessionMenu is the menu of a conversation. */
export function SessionMenu({ session, onRename, place }: { session: Session; onRename: () => void; place?: "start" }) {
  const { path, route } = useLocation();
  const [sharing, setSharing] = useState(false);
  const confirm = useConfirm();
  const title = session.title || msg("chat.untitled");
  const drop = async () => {
    await remove(session.id);
    forget(session.id);
    done(msg("chat.removed"));
    if (path === `/chat/${session.id}`) route("/", true);
  };
  return (
    <>
      <Menu small label={msg("chat.actions", { title })} place={place}>
        <MenuItem onClick={onRename}>{msg("chat.rename")}</MenuItem>
        <MenuItem onClick={() => void pin(session)}>{session.pinned ? msg("chat.unpin") : msg("chat.pin")}</MenuItem>
        <MenuItem onClick={() => (moving.value = session)}>{msg("chat.move")}</MenuItem>
        <MenuItem onClick={() => void archive(session)}>
          {session.archived ? msg("chat.unarchive") : msg("chat.archive")}
        </MenuItem>
        {me.value?.can.share && <MenuItem onClick={() => setSharing(true)}>{msg("chat.share")}</MenuItem>}
        <MenuItem onClick={() => exportSession(session.id, "markdown")}>{msg("chat.exportMarkdown")}</MenuItem>
        <MenuItem onClick={() => exportSession(session.id, "jsonl")}>{msg("chat.exportLines")}</MenuItem>
        <MenuItem
          danger
          onClick={() =>
            confirm.ask({
              title: msg("chat.removeTitle"),
              children: msg("chat.removeText", { title }),
              yes: msg("chat.remove"),
              danger: true,
              act: drop,
            })
          }
        >
          {msg("chat.remove")}
        </MenuItem>
      </Menu>
      {confirm.open}
      {sharing && (
        <ErrorBoundary>
          <ShareDialog session={session.id} title={title} onClose={() => setSharing(false)} />
        </ErrorBoundary>
      )}
    </>
  );
}

/** exportSession makes the browser save a conversation, under the name the hub gives. */
export function exportSession(id: string, format: "markdown" | "jsonl") {
  const a = document.createElement("a");
  a.href = `/api/v1/sessions/${id}/export?format=${format}`;
  a.download = "export"; // without it the browser would navigate
  document.body.append(a);
  a.click();
  a.remove();
}

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

/** NameField edits a name in the list. Enter saves, Escape cancels. */
export function NameField({ label, value, maxLength, save, onDone }: NameFieldProps) {
  const [text, setText] = useState(value);
  const input = useRef<HTMLInputElement>(null);
  const over = useRef(false);
  useLayoutEffect(() => {
    const frame = requestAnimationFrame(() => {
      input.current?.focus(); // after the menu has returned the focus
      input.current?.select();
    });
    return () => cancelAnimationFrame(frame);
  }, []);
  const keep = () => {
    if (over.current) return;
    over.current = true;
    onDone();
    if (text.trim() && text.trim() !== value) void save(text.trim()).catch(failed);
  };
  return (
    <input
      ref={input}
      class="input"
      value={text}
      maxLength={maxLength}
      aria-label={label}
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
