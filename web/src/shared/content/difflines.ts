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
  /** Its first line, and the lines after it, in the old and new file. */
  from: number;
  next: { old: number; new: number };
  /** The line of the new file after it, as its header says. It is behind `next` if the diff was cut. */
  end?: number;
}

const head = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,(\d+))? @@ ?(.*)$/;

/** The number of unchanged lines that the hub's diffs show after a change, unless the file ends. */
const contextLines = 3;

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
      hunk = {
        about: start[4] ?? "",
        skipped: Math.max(0, from - at),
        rows: [],
        from,
        next: { old: before, new: from },
        end: from + Number(start[3] ?? 1),
      };
      at = from;
      out.push(hunk);
    } else if (hunk) {
      const text = line.slice(1).replace(/\r$/, "");
      if (line.startsWith("+")) hunk.rows.push({ kind: "added", new: at++, text });
      else if (line.startsWith("-")) hunk.rows.push({ kind: "removed", old: before++, text });
      else if (line.startsWith("\\")) Object.assign(hunk.rows.at(-1) ?? {}, { noEnd: true });
      else hunk.rows.push({ kind: "same", old: before++, new: at++, text });
      hunk.next = { old: before, new: at };
    }
  }
  return out;
}

/** endsFile reports whether the file is known to end with the last hunk. */
export function endsFile(all: Hunk[]): boolean {
  const last = all.at(-1);
  return !!last && last.next.new === last.end && last.rows.slice(-contextLines).some((r) => r.kind !== "same");
}

/** linesOf returns the lines of a text without their ends. */
export const linesOf = (text: string): string[] => (text ? text.replace(/\n$/, "").split(/\r?\n/) : []);

/** wholeFileHunk returns all lines of a file as a hunk. */
export function wholeFileHunk(text: string): Hunk[] {
  const rows = linesOf(text).map((text, i): Row => ({ kind: "same", new: i + 1, text }));
  return rows.length ? [{ about: "", skipped: 0, rows, from: 1, next: { old: 1, new: rows.length + 1 } }] : [];
}

/** A range of lines of the new file, with both ends. */
export type Range = [from: number, to: number];

/**
 * expandHunks adds unchanged lines of the new file to hunks. It returns the hunks, joined where they meet,
 * and the number of lines after the last one that are left out.
 */
export function expandHunks(all: Hunk[], lines: string[], ranges: Range[]): { hunks: Hunk[]; rest: number } {
  const out: Hunk[] = [];
  let at = 1;
  let shift = 0; // from a line of the new file to the same line of the old one
  const upTo = (end: number): number => {
    let skipped = 0;
    for (; at < end; at++) {
      if (!ranges.some(([from, to]) => at >= from && at <= to)) {
        skipped++;
        continue;
      }
      const row: Row = { kind: "same", old: at + shift, new: at, text: lines[at - 1] ?? "" };
      const last = out.at(-1);
      if (last && !skipped) last.rows.push(row);
      else out.push({ about: "", skipped, rows: [row], from: at, next: { old: at + shift + 1, new: at + 1 } });
      out.at(-1)!.next = { old: at + shift + 1, new: at + 1 };
      skipped = 0;
    }
    return skipped;
  };
  for (const h of all) {
    const skipped = upTo(h.from);
    const last = out.at(-1);
    if (last && !skipped) {
      last.rows.push(...h.rows);
      last.next = h.next;
    } else out.push({ ...h, skipped, rows: [...h.rows] });
    at = h.next.new;
    shift = h.next.old - h.next.new;
  }
  return { hunks: out, rest: upTo(lines.length + 1) };
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
 * changedPart returns the changed part of two similar lines, at word boundaries. It returns undefined if
 * they have little in common.
 */
export function changedPart(before: string, after: string): { from: number; oldTo: number; newTo: number } | undefined {
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
