import { useState } from "preact/hooks";
import { ErrorBoundary, useLocation } from "preact-iso";
import { me } from "../../shared/api/me";
import { msg, withRest } from "../../shared/i18n/messages";
import { failed, Menu, MenuItem, Tag, useConfirm } from "../../shared/ui";
import { lazyPart } from "../../shared/ui/lazypart";
import { sessionToMove, type Session } from "./sessions";

/** actions loads what a menu does. It is loaded ahead. */
export const actions = () => import("./sessionactions");

/** TitleField is loaded ahead. */
export const TitleField = lazyPart(() => import("./namefield").then((m) => m.TitleField));
const ShareDialog = lazyPart(() => withRest(import("../../features/sharing/sharedialog")));

/** SessionRow is a conversation in the list, with its title, state and menu. */
export function SessionRow({ session, here, onOpen }: { session: Session; here: boolean; onOpen?: () => void }) {
  const [renaming, setRenaming] = useState(false);
  return (
    <li class={here ? "chat-row here" : "chat-row"} data-row={session.id}>
      {renaming ? (
        <ErrorBoundary>
          <TitleField session={session} onDone={() => setRenaming(false)} />
        </ErrorBoundary>
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
    await (await actions()).deleteConversation(session.id);
    if (path === `/chat/${session.id}`) route("/", true);
  };
  const act = (run: (all: Awaited<ReturnType<typeof actions>>) => unknown) => void actions().then(run).catch(failed);
  return (
    <>
      <Menu small label={msg("chat.actions", { title })} place={place}>
        <MenuItem onClick={onRename}>{msg("chat.rename")}</MenuItem>
        <MenuItem onClick={() => act((a) => a.pin(session))}>
          {session.pinned ? msg("chat.unpin") : msg("chat.pin")}
        </MenuItem>
        <MenuItem onClick={() => (sessionToMove.value = session)}>{msg("chat.move")}</MenuItem>
        <MenuItem onClick={() => act((a) => a.archive(session))}>
          {session.archived ? msg("chat.unarchive") : msg("chat.archive")}
        </MenuItem>
        {me.value?.can.share && <MenuItem onClick={() => setSharing(true)}>{msg("chat.share")}</MenuItem>}
        <MenuItem onClick={() => act((a) => a.exportSession(session.id, "markdown"))}>
          {msg("chat.exportMarkdown")}
        </MenuItem>
        <MenuItem onClick={() => act((a) => a.exportSession(session.id, "jsonl"))}>{msg("chat.exportLines")}</MenuItem>
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
