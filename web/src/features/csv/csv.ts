/** A row of a CSV file, with the number of its first line. */
export interface Row {
  line: number;
  cells: string[];
}

/** parseCSV reads CSV with commas, semicolons or tabs. Cells are only text. It throws if a quoted cell does not end. */
export function parseCSV(text: string): Row[] {
  const plain = text.replace(/^\ufeff/, "");
  const separator = separatorOf(plain);
  const rows: Row[] = [];
  let row: Row = { line: 1, cells: [] };
  let cell = "";
  let quoted = false;
  let line = 1;
  const endRow = () => {
    row.cells.push(cell.trim());
    if (row.cells.some(Boolean)) rows.push(row);
    cell = "";
  };
  for (let i = 0; i < plain.length; i++) {
    const c = plain[i]!;
    if (c === "\n") line++;
    if (quoted) {
      if (c !== '"') cell += c;
      else if (plain[i + 1] === '"') cell += plain[++i]!;
      else quoted = false;
    } else if (c === '"' && !cell.trim()) {
      quoted = true;
      cell = "";
    } else if (c === separator) {
      row.cells.push(cell.trim());
      cell = "";
    } else if (c === "\n" || (c === "\r" && plain[i + 1] !== "\n")) {
      endRow();
      row = { line, cells: [] };
    } else if (c !== "\r") cell += c;
  }
  if (quoted) throw new SyntaxError(`line ${row.line}`);
  endRow();
  return rows;
}

/** separatorOf returns the separator that the first line has most of. */
function separatorOf(text: string): string {
  const head = /^[^\r\n]*/.exec(text)![0];
  const count = (s: string) => head.split(s).length;
  return [",", ";", "\t"].reduce((best, s) => (count(s) > count(best) ? s : best));
}

/**
 * readText decodes a text file. Excel saves CSV in the encoding of the system, so text that is not UTF-8 is read as
 * GB 18030, which is a guess.
 */
export function readText(bytes: ArrayBuffer): { text: string; guessed: boolean } {
  const [a, b] = new Uint8Array(bytes);
  if (a === 0xff && b === 0xfe) return { text: new TextDecoder("utf-16le").decode(bytes), guessed: false };
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes), guessed: false };
  } catch {
    return { text: new TextDecoder("gb18030").decode(bytes), guessed: true };
  }
}

/**
 * writeCSV writes rows as CSV. It quotes cells that a spreadsheet would compute, and begins with a byte order mark, so
 * that Excel reads UTF-8.
 */
export const writeCSV = (rows: unknown[][]): string =>
  "\ufeff" + rows.map((row) => row.map(written).join(",")).join("\r\n") + "\r\n";

/** unquoted undoes the quoting of a cell that a spreadsheet would compute. */
export const unquoted = (cell: string): string => cell.replace(/^'(?=[=+\-@])/, "");

function written(value: unknown): string {
  let text = value === undefined ? "" : String(value);
  if (/^[=+\-@\t\r]/.test(text)) text = "'" + text;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** save makes the browser save a text as a file. */
export function save(name: string, type: string, text: string) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name.replace(/[^\w.-]+/g, "-");
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
