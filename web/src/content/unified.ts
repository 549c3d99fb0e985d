/** A line of a change: what it was, what it is now, and whether it is in both. */
export interface Row {
  kind: "same" | "added" | "removed";
  /** The number of the line in the old and in the new file, where it is there. */
  old?: number;
  new?: number;
  text: string;
  /** That the file ends with this line, without a line break. */
  noEnd?: boolean;
}

export interface Hunk {
  /** What stands behind the numbers of its head, as the name of a function. */
  about: string;
  /** How many unchanged lines of the new file are left out before it. */
  skipped: number;
  rows: Row[];
}

const head = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)$/;

/** Reads the unified form of the changes of one file. */
export function hunks(diff: string): Hunk[] {
  const out: Hunk[] = [];
  let before = 1;
  let at = 1;
  let hunk: Hunk | undefined;
  for (const line of diff.replace(/\n$/, "").split("\n")) {
    const start = head.exec(line);
    if (start) {
      before = Number(start[1]);
      const from = Number(start[2]);
      hunk = { about: start[3] ?? "", skipped: Math.max(0, from - at), rows: [] };
      at = from;
      out.push(hunk);
    } else if (hunk) {
      const text = line.slice(1).replace(/\r$/, "");
      if (line.startsWith("+")) hunk.rows.push({ kind: "added", new: at++, text });
      else if (line.startsWith("-")) hunk.rows.push({ kind: "removed", old: before++, text });
      else if (line.startsWith("\\")) Object.assign(hunk.rows.at(-1) ?? {}, { noEnd: true });
      else hunk.rows.push({ kind: "same", old: before++, new: at++, text });
    }
  }
  return out;
}

/** A line of both sides: what was on the left, what is on the right. */
export interface Pair {
  left?: Row;
  right?: Row;
}

/** Puts removed lines beside the lines that were added in their place. */
export function pairs(rows: Row[]): Pair[] {
  const out: Pair[] = [];
  for (let i = 0; i < rows.length; ) {
    if (rows[i]!.kind === "same") {
      out.push({ left: rows[i], right: rows[i++] });
      continue;
    }
    const removed: Row[] = [];
    const added: Row[] = [];
    while (rows[i]?.kind === "removed") removed.push(rows[i++]!);
    while (rows[i]?.kind === "added") added.push(rows[i++]!);
    for (let n = 0; n < Math.max(removed.length, added.length); n++) out.push({ left: removed[n], right: added[n] });
  }
  return out;
}

/** What differs within two lines: the part between what they begin and end with alike, at words. Undefined if little is alike. */
export function within(before: string, after: string): { from: number; oldTo: number; newTo: number } | undefined {
  const a = before.match(/\w+|\s+|[^\w\s]/gu) ?? [];
  const b = after.match(/\w+|\s+|[^\w\s]/gu) ?? [];
  let start = 0;
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const length = (words: string[]) => words.join("").length;
  const same = length(a.slice(0, start)) + length(a.slice(a.length - end));
  if (same * 3 < Math.max(before.length, after.length)) return undefined;
  const tail = length(a.slice(a.length - end));
  return { from: length(a.slice(0, start)), oldTo: before.length - tail, newTo: after.length - tail };
}
