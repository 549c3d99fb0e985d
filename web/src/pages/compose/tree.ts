import type { DraftFile } from "./files";

/** A folder with its content. */
export interface Branch {
  files: DraftFile[];
  folders: [name: string, branch: Branch][];
}

/** treeOf groups the files by folder, SKILL.md first. */
export function treeOf(files: DraftFile[]): Branch {
  const root: Branch = { files: [], folders: [] };
  for (const f of files) {
    let at = root;
    for (const name of f.path.split("/").slice(0, -1)) {
      let below = at.folders.find(([n]) => n === name);
      if (!below) at.folders.push((below = [name, { files: [], folders: [] }]));
      at = below[1];
    }
    at.files.push(f);
  }
  root.files.sort((a, b) => Number(b.path === "SKILL.md") - Number(a.path === "SKILL.md"));
  return root;
}
