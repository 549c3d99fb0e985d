import { useRef, useState } from "preact/hooks";
import { filesOfDrop, type PathAndFile } from "../../features/upload/entries";
import { limits } from "../../shared/api/limits";
import { size } from "../../shared/i18n/format";
import { findMsg, msg } from "../../shared/i18n/messages";
import { Button, done, failed, Icon, Menu, MenuItem, useConfirm } from "../../shared/ui";
import type { Work } from "./draftstate";
import { faultOf, fileOf, sizeOf, skillFile, type DraftFile } from "./files";
import { PathDialog } from "./pathdialog";
import { treeOf, type Branch } from "./tree";
import type { View } from "./viewstate";

/** FilesPane shows the files of the skill as a tree, and adds, renames and deletes them. */
export function FilesPane({ work, view }: { work: Work; view: View }) {
  const [asked, ask] = useState<"new" | DraftFile>();
  const [over, setOver] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const confirm = useConfirm();
  const open = (path: string) => view.show(view.wide ? { file: path } : { file: path, pane: "text" });
  const take = (list: Promise<PathAndFile[]>) => void list.then((files) => upload(work, files)).catch(failed);
  const pick = (list: FileList | null) => take(Promise.resolve([...(list ?? [])].map((f) => [f.name, f])));
  const remove = (f: DraftFile) =>
    confirm.ask({
      title: msg("compose.removeTitle", { path: f.path }),
      children: <p>{msg("compose.removeText")}</p>,
      yes: msg("compose.remove"),
      danger: true,
      act: async () => {
        work.change((was) => was.filter((o) => o.path !== f.path));
        if (view.file === f.path) view.show({ file: skillFile });
      },
    });
  const drop = (e: DragEvent) => {
    e.preventDefault();
    setOver(false);
    if (e.dataTransfer) take(filesOfDrop(e.dataTransfer.items));
  };
  const total = work.files.reduce((n, f) => n + sizeOf(f), 0);
  return (
    <div
      class={over ? "stack compose-drop over" : "stack compose-drop"}
      onDragOver={(e) => (e.preventDefault(), setOver(true))}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <div class="row">
        <Button small icon="plus" onClick={() => ask("new")}>
          {msg("compose.addFile")}
        </Button>
        <Button small icon="upload" onClick={() => picker.current?.click()}>
          {msg("compose.upload")}
        </Button>
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          onChange={(e) => (pick(e.currentTarget.files), (e.currentTarget.value = ""))}
        />
        <span class="push small muted">{msg("compose.files", { count: work.files.length, size: size(total) })}</span>
      </div>
      <Tree branch={treeOf(work.files)} open={view.file} onOpen={open} onRename={ask} onRemove={remove} />
      <p class="small muted">{msg("compose.drop")}</p>
      {asked && (
        <PathDialog
          work={work}
          file={asked === "new" ? undefined : asked}
          onClose={() => ask(undefined)}
          onDone={open}
        />
      )}
      {confirm.open}
    </div>
  );
}

interface TreeProps {
  branch: Branch;
  open: string;
  onOpen: (path: string) => void;
  onRename: (f: DraftFile) => void;
  onRemove: (f: DraftFile) => void;
}

function Tree({ branch, ...rest }: TreeProps) {
  return (
    <ul class="compose-tree">
      {branch.files.map((f) => (
        <li key={f.path} class="row keep">
          <button
            type="button"
            class="compose-leaf"
            title={f.path}
            aria-current={rest.open === f.path ? "true" : undefined}
            onClick={() => rest.onOpen(f.path)}
          >
            <Icon name="file" size={16} />
            <span class="truncate">{f.path.slice(f.path.lastIndexOf("/") + 1)}</span>
            <span class="push small muted nowrap">{size(sizeOf(f))}</span>
          </button>
          <Menu small label={msg("compose.actionsOf", { path: f.path })}>
            <MenuItem onClick={() => rest.onRename(f)}>{msg("compose.rename")}…</MenuItem>
            <MenuItem danger onClick={() => rest.onRemove(f)}>
              {msg("compose.remove")}…
            </MenuItem>
          </Menu>
        </li>
      ))}
      {branch.folders.map(([name, below]) => (
        <li key={name}>
          <span class="compose-folder">
            <Icon name="folder" size={16} />
            {name}
          </span>
          <Tree branch={below} {...rest} />
        </li>
      ))}
    </ul>
  );
}

/** upload adds local files and replaces those with the same names. */
async function upload(work: Work, list: PathAndFile[]) {
  const most = await limits();
  const room = most.package_unpacked - work.files.reduce((n, f) => n + sizeOf(f), 0);
  if (work.files.length + list.length > most.package_files || list.reduce((n, [, f]) => n + f.size, 0) > room)
    throw new Error(msg("compose.tooMany", { count: most.package_files, bytes: size(most.package_unpacked) }));
  const read = await Promise.all(list.map(async ([path, f]) => fileOf(path, new Uint8Array(await f.arrayBuffer()))));
  const fresh = read.map((f) => ({ ...f, path: pathForFile(f.path, work.files) }));
  for (const f of fresh) {
    const fault = faultOf(f.path, work.files);
    if (fault && fault !== "taken") throw new Error(`${f.path}: ${findMsg("compose.faults", fault)}`);
  }
  const names = new Set(fresh.map((f) => f.path));
  const replaced = work.files.filter((f) => names.has(f.path)).length;
  work.change((was) => [...was.filter((f) => !names.has(f.path)), ...fresh]);
  if (fresh.length > replaced) done(msg("compose.uploaded", { count: fresh.length - replaced }));
  if (replaced) done(msg("compose.replace", { count: replaced }));
}

/**
 * pathForFile returns the path for an added file: that of a file with its name, else the folder for its
 * type. A file from a folder keeps its path.
 */
function pathForFile(name: string, files: DraftFile[]): string {
  if (name.includes("/")) return name;
  const there = files.filter((f) => f.path.slice(f.path.lastIndexOf("/") + 1) === name);
  if (there.length === 1) return there[0]!.path;
  if (name === skillFile) return name;
  if (/\.(py|sh|bash|js|mjs|ts|rb|pl|ps1)$/i.test(name)) return `scripts/${name}`;
  return /\.(md|txt|rst)$/i.test(name) ? `references/${name}` : `assets/${name}`;
}
