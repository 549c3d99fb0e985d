import type { Schema } from "../../shared/api/client";

type Record = Schema["Record"];

/** asCSV returns records as CSV with names and IDs. It quotes cells that a spreadsheet would compute. */
export function asCSV(records: Record[], nameOf: (id: string) => string): string {
  const head = ["number", "at", "actor", "name", "action", "namespace", "subject", "decision", "details"];
  const rows = records.map((r) => [
    r.number,
    r.at,
    r.actor,
    nameOf(r.actor),
    r.action,
    r.namespace,
    r.subject,
    r.decision,
    r.details === undefined ? "" : JSON.stringify(r.details),
  ]);
  return [head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

function cell(value: unknown): string {
  let text = value === undefined ? "" : String(value);
  if (/^[=+\-@\t\r]/.test(text)) text = "'" + text;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const asJSON = (records: Record[]) => JSON.stringify(records, null, 2) + "\n";

/** save makes the browser save a text as a file. */
export function save(name: string, type: string, text: string) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name.replace(/[^\w.-]+/g, "-");
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
