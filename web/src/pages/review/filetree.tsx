import { count } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Icon } from "../../shared/ui";
import { useDiscussion } from "./discussion";
import { anchor } from "./position";
import { useReview } from "./reviewstate";

/** A file in the tree, with its changed lines if it is compared. */
export interface TreeFile {
  path: string;
  added?: number;
  removed?: number;
}

interface Folder {
  name: string;
  folders: Folder[];
  files: TreeFile[];
}

/** folderOf returns the tree of files. */
function folderOf(files: TreeFile[]): Folder {
  const root: Folder = { name: "", folders: [], files: [] };
  for (const f of [...files].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    let at = root;
    for (const name of f.path.split("/").slice(0, -1)) {
      let next = at.folders.find((d) => d.name === name);
      if (!next) at.folders.push((next = { name, folders: [], files: [] }));
      at = next;
    }
    at.files.push(f);
  }
  return root;
}

/** FileTree lists the files with their numbers of changes and comments. */
export function FileTree({ files }: { files: TreeFile[] }) {
  const { viewed, has } = useReview();
  const mine = files.filter((f) => has(f.path)); // removed files cannot be marked
  const seen = mine.filter((f) => viewed.has(f.path)).length;
  return (
    <details class="card review-tree" open>
      <summary>
        {msg("review.files")}{" "}
        {mine.length > 0 && (
          <span class="small muted">{msg("review.viewedOf", { n: count(seen), all: count(mine.length) })}</span>
        )}
      </summary>
      <nav aria-label={msg("review.files")}>
        <FolderView folder={folderOf(files)} />
      </nav>
    </details>
  );
}

function FolderView({ folder }: { folder: Folder }) {
  const { threads } = useDiscussion();
  const { viewed } = useReview();
  return (
    <ul>
      {folder.folders.map((f) => (
        <li key={f.name}>
          <span class="row small muted">
            <Icon name="folder" size={16} /> {f.name}
          </span>
          <FolderView folder={f} />
        </li>
      ))}
      {folder.files.map((f) => {
        const comments = threads.filter((t) => t.path === f.path).reduce((n, t) => n + t.comments.length, 0);
        return (
          <li key={f.path} class="row small">
            <a href={`#${anchor(f.path)}`}>{f.path.split("/").at(-1)}</a>
            {f.added !== undefined && (
              <span class="muted">{msg("review.lines", { a: f.added, r: f.removed ?? 0 })}</span>
            )}
            {comments > 0 && <span class="muted">{msg("review.commentCount", { count: comments })}</span>}
            {viewed.has(f.path) && (
              <span>
                <Icon name="check" size={14} /> <span class="visually-hidden">{msg("review.seen")}</span>
              </span>
            )}
          </li>
        );
      })}
    </ul>
  );
}
