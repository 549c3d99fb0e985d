import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ErrorBoundary, useLocation } from "preact-iso";
import { refusal, Unreachable } from "../../shared/api/client";
import { me } from "../../shared/api/me";
import { msg, withRest } from "../../shared/i18n/messages";
import { done, failed, Menu, MenuItem, Tag, useConfirm } from "../../shared/ui";
import { lazyPart } from "../../shared/ui/lazypart";
import { keepPlace } from "./listfocus";
import { archive, moving, pin, remove, rename, type Session } from "./sessions";
import { forget } from "./transcriptcache";

const ShareDialog = lazyPart(() => withRest(import("../../features/sharing/sharedialog")));

/** SessionRow is a conversation in the list, with its title, state and menu. */
export function SessionRow({ session, here, onOpen }: { session: Session; here: boolean; onOpen?: () => void }) {
  const [renaming, setRenaming] = useState(false);
  return (
    <li class={here ? "chat-row here" : "chat-row"} data-row={session.id}>
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
    const focus = keepPlace(session.id);
    await remove(session.id);
    forget(session.id);
    done(msg("chat.removed"));
    if (path === `/chat/${session.id}`) route("/", true);
    focus();
  };
  const change = (act: (s: Session) => Promise<unknown>) => void act(session).then(keepPlace(session.id));
  return (
    <>
      <Menu small label={msg("chat.actions", { title })} place={place}>
        <MenuItem onClick={onRename}>{msg("chat.rename")}</MenuItem>
        <MenuItem onClick={() => change(pin)}>{session.pinned ? msg("chat.unpin") : msg("chat.pin")}</MenuItem>
        <MenuItem onClick={() => (moving.value = session)}>{msg("chat.move")}</MenuItem>
        <MenuItem onClick={() => change(archive)}>
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
export const exportSession = (id: string, format: "markdown" | "jsonl") =>
  void saveExport(`/api/v1/sessions/${id}/export?format=${format}`).catch(failed);

/** saveExport saves what is at an address. The browser itself would not say why it is refused. */
async function saveExport(address: string) {
  const get = (method: string) =>
    fetch(address, { method }).catch(() => {
      throw new Unreachable();
    });
  if (!(await get("HEAD")).ok) {
    const refused = await get("GET"); // a response to HEAD has no reason
    if (!refused.ok) throw refusal(refused.status, await refused.json().catch(() => undefined));
    await refused.body?.cancel();
  }
  const a = document.createElement("a");
  a.href = address;
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
          close();
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
