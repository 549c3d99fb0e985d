import { writeCSV } from "../../features/csv/csv";
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
  return writeCSV([head, ...rows]);
}

export const asJSON = (records: Record[]) => JSON.stringify(records, null, 2) + "\n";
