import { isIgnored } from "./zip";

/** A file with its path, which starts with the name of the dropped folder. */
export type PathAndFile = [path: string, file: File];

export const fileOf = (entry: FileSystemFileEntry) =>
  new Promise<File>((resolve, reject) => entry.file(resolve, reject));

const maxFiles = 5000; // more files cannot be a folder of skills

/** filesIn returns the files in a folder. */
export async function filesIn(dir: FileSystemDirectoryEntry, path: string): Promise<PathAndFile[]> {
  const reader = dir.createReader();
  const out: PathAndFile[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length || out.length > maxFiles) return out;
    for (const e of some) {
      if (isIgnored(e.name)) continue;
      const at = `${path}/${e.name}`;
      if (e.isDirectory) out.push(...(await filesIn(e as FileSystemDirectoryEntry, at)));
      else out.push([at, await fileOf(e as FileSystemFileEntry)]);
    }
  }
}

/** filesOfDrop returns the dropped files and those in dropped folders. The folder of a SKILL.md is not in the paths. */
export async function filesOfDrop(items: DataTransferItemList): Promise<PathAndFile[]> {
  // Read all items before the first await, because they are gone afterwards.
  const all = [...items].map((i) => ({ entry: i.webkitGetAsEntry(), file: i.getAsFile() }));
  const out: PathAndFile[] = [];
  for (const { entry, file } of all) {
    if (!entry?.isDirectory) {
      if (file) out.push([file.name, file]);
      continue;
    }
    const files = await filesIn(entry as FileSystemDirectoryEntry, entry.name);
    const isSkill = files.some(([path]) => path === `${entry.name}/SKILL.md`);
    out.push(...files.map(([path, f]): PathAndFile => [isSkill ? path.slice(entry.name.length + 1) : path, f]));
  }
  return out;
}
