/** A line of a diff. */
export interface Row {
  kind: "same" | "added" | "removed";
  /** The line numbers in the old and new file, if present. */
  old?: number;
  new?: number;
  text: string;
  /** Whether the file ends here without a newline. */
  noEnd?: boolean;
}

export interface Hunk {
  /** The text after the hunk header, such as a function name. */
  about: string;
  /** The number of unchanged lines before it that are left out. */
  skipped: number;
  rows: Row[];
}

const head = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)$/;

/** hunks parses the unified diff of one file. */
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

/** A left and a right line. */
export interface Pair {
  left?: Row;
  right?: Row;
}

/** pairs puts removed lines next to the added lines that replace them. */
export function pairs(rows: Row[]): Pair[] {
  const out: Pair[] = [];
  for (let i = 0; i < rows.length;) {
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

/**
 * within returns the changed part of two similar lines, at word boundaries. It returns undefined if
 * they have little in common.
 */
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
