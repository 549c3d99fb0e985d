import type { Schema } from "../../shared/api/client";

type ManifestFile = Schema["ManifestFile"];

/** A folder of a skill. */
export interface Folder {
  name: string;
  path: string;
  /** The number of files in it, with subfolders. */
  many: number;
  folders: Folder[];
  files: ManifestFile[];
}

/** folders returns the files of a manifest as a tree, SKILL.md first. */
export function folders(files: ManifestFile[]): Folder {
  const root: Folder = { name: "", path: "", many: files.length, folders: [], files: [] };
  for (const f of [...files].sort((a, b) => first(b) - first(a) || a.path.localeCompare(b.path))) {
    let at = root;
    const steps = f.path.split("/");
    for (const [i, step] of steps.slice(0, -1).entries()) {
      let next = at.folders.find((x) => x.name === step);
      if (!next)
        at.folders.push(
          (next = { name: step, path: steps.slice(0, i + 1).join("/"), many: 0, folders: [], files: [] }),
        );
      next.many++;
      at = next;
    }
    at.files.push(f);
  }
  return root;
}

const first = (f: ManifestFile) => Number(/^skill\.md$/i.test(f.path));
