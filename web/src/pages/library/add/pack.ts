import { fileOf, filesIn, type PathAndFile } from "../../../features/upload/entries";
import { pack } from "../../../features/upload/zip";
import { msg } from "../../../shared/i18n/messages";

/** A package to upload: a ZIP, named after the skill or its file. */
export interface Package {
  name: string;
  /** Whether the files come from a folder. */
  folder: boolean;
  /** Creates the ZIP. It fails if there is no skill in it. */
  zip: () => Promise<Blob>;
}

/** The name of a SKILL.md, also after a second download. */
const isSkillFile = /^skill( \(\d+\))?\.md$/i;

/** packagesOf returns the packages in files: each ZIP, each folder with a SKILL.md, and each SKILL.md without a folder. */
export async function packagesOf(files: File[]): Promise<Package[]> {
  const packages: Package[] = [];
  const loose: PathAndFile[] = [];
  for (const f of files) {
    if (f.webkitRelativePath) loose.push([f.webkitRelativePath, f]);
    else if (isSkillFile.test(f.name)) packages.push(...folders([[`${await nameIn(f)}/SKILL.md`, f]]));
    else packages.push({ name: f.name, folder: false, zip: async () => f });
  }
  return [...packages, ...folders(loose)];
}

/** nameIn returns the name in the frontmatter of a SKILL.md, which must also be that of its folder. */
async function nameIn(f: File): Promise<string> {
  const [, name] = /^name:\s*["']?([\w.-]+)/m.exec(await f.slice(0, 64 << 10).text()) ?? [];
  return name ?? "skill";
}

/** packagesOfDrop returns the packages of dropped files and folders. */
export async function packagesOfDrop(items: DataTransferItemList): Promise<Package[]> {
  // Read all items before the first await, because they are gone afterwards. Files from another
  // program may have no file system entry.
  const all = [...items].map((i) => ({ entry: i.webkitGetAsEntry(), file: i.getAsFile() }));
  const packages: Package[] = [];
  for (const { entry, file } of all) {
    if (!entry) packages.push(...(await packagesOf(file ? [file] : [])));
    else if (entry.isFile) packages.push(...(await packagesOf([await fileOf(entry as FileSystemFileEntry)])));
    else packages.push(...folders(await filesIn(entry as FileSystemDirectoryEntry, entry.name)));
  }
  return packages;
}

/**
 * folders returns a package for each folder with a SKILL.md. Without any, it returns one that
 * reports the error.
 */
function folders(files: PathAndFile[]): Package[] {
  const roots = files.filter(([path]) => path.endsWith("/SKILL.md")).map(([path]) => path.slice(0, -"SKILL.md".length));
  const top = roots.filter((r) => !roots.some((other) => other !== r && r.startsWith(other)));
  if (!top.length && files.length) {
    const name = files[0]![0].split("/")[0]!;
    return [{ name, folder: true, zip: () => Promise.reject(new Error(msg("add.noFolder", { name }))) }];
  }
  return top.map((root) => ({
    name: root.split("/").at(-2)! + ".zip",
    folder: true,
    zip: () =>
      pack(
        files
          .filter(([path]) => path.startsWith(root))
          .map(([path, f]) => [root.split("/").at(-2)! + "/" + path.slice(root.length), f]),
      ),
  }));
}
