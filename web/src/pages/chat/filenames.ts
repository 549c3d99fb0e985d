/**
 * fileName returns the name of a file as the hub accepts it. macOS puts a narrow space into the names of screenshots,
 * and names from other systems may have colons and backslashes.
 */
export function fileName(name: string): string {
  const clean = name
    .normalize("NFC")
    .replace(/[\p{Z}\t\n\r]/gu, " ")
    .replace(/[\p{C}]/gu, "")
    .replace(/[\\/:]/g, "-")
    .trim();
  return /^\.*$/.test(clean) ? `file${clean}` : clean;
}

/** freeName returns a name that is not taken, with a number if necessary. */
export function freeName(name: string, taken: (name: string) => boolean): string {
  const [, stem = name, end = ""] = /^(.+?)(\.[^.]*)?$/.exec(name) ?? [];
  let free = name;
  for (let n = 2; taken(free); n++) free = `${stem}-${n}${end}`;
  return free;
}
