import { useState } from "preact/hooks";
import { api, got } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { done, Icon, Menu, MenuItem, useConfirm, Waiting } from "../../shared/ui";
import { keepFocus } from "./listfocus";
import { NameField } from "./namefield";
import { type ListProps, MoreSessions, Rows } from "./sessionlist";
import {
  type Folder,
  folders,
  listOf,
  openFolders,
  refreshFolders,
  reloadShown,
  toggleFolder,
  unfiled,
  unpinned,
} from "./sessions";

/** FolderList lists the user's folders, which open to their conversations. */
export default function FolderList(props: ListProps) {
  return (
    <section aria-label={msg("folders.title")}>
      <h2 class="day">{msg("folders.title")}</h2>
      {folders.value?.map((f) => (
        <FolderPart key={f.id} folder={f} {...props} />
      ))}
    </section>
  );
}

/** FolderPart is a folder. Its pinned conversations are listed above all folders. */
function FolderPart({ folder, ...rest }: ListProps & { folder: Folder }) {
  const [renaming, setRenaming] = useState(false);
  const confirm = useConfirm();
  const open = openFolders.value.includes(folder.id);
  const params = { path: { folder: folder.id } };
  const rename = async (name: string) => {
    await got(api.PATCH("/api/v1/folders/{folder}", { params, body: { name } }));
    await refreshFolders();
  };
  const drop = async () => {
    const focus = keepFocus(folder.id);
    await got(api.DELETE("/api/v1/folders/{folder}", { params }));
    if (open) toggleFolder(folder.id);
    await Promise.all([refreshFolders(), reloadShown(unfiled)]);
    done(msg("folders.removed"));
    focus();
  };
  const list = unpinned(folder.id);
  return (
    <div class="chat-folder">
      <div class="chat-row" data-row={folder.id}>
        {renaming ? (
          <NameField
            label={msg("folders.name")}
            value={folder.name}
            maxLength={60}
            save={rename}
            onDone={() => setRenaming(false)}
          />
        ) : (
          <>
            <button type="button" aria-expanded={open} title={folder.name} onClick={() => toggleFolder(folder.id)}>
              <Icon name={open ? "down" : "right"} size={14} />
              <Icon name="folder" size={16} />
              <span class="truncate">{folder.name}</span>
              <span class="small muted">{folder.sessions}</span>
            </button>
            <Menu small label={msg("chat.actions", { title: folder.name })}>
              <MenuItem onClick={() => setRenaming(true)}>{msg("chat.rename")}</MenuItem>
              <MenuItem
                danger
                onClick={() =>
                  confirm.ask({
                    title: msg("folders.removeTitle", { name: folder.name }),
                    children: msg("folders.removeText"),
                    yes: msg("folders.remove"),
                    danger: true,
                    act: drop,
                  })
                }
              >
                {msg("folders.remove")}
              </MenuItem>
            </Menu>
          </>
        )}
      </div>
      {open && (
        <div class="chat-filed">
          {!listOf(folder.id) && <Waiting for={msg("chat.gettingList")} />}
          {folder.pinned > 0 && <p class="small muted">{msg("folders.pinned", { count: folder.pinned })}</p>}
          {listOf(folder.id) && !list.length && !folder.pinned && <p class="small muted">{msg("folders.empty")}</p>}
          <Rows sessions={list} {...rest} />
          <MoreSessions name={folder.id} />
        </div>
      )}
      {confirm.open}
    </div>
  );
}
