import { msg } from "../../shared/i18n/messages";
import { parseCSV, type Row, unquoted } from "./csv";

/** The limits of a file with users. */
export const maxRows = 1000;
export const maxBytes = 1 << 20;

export const roles = ["reporter", "developer", "maintainer", "owner"] as const;
export type Role = (typeof roles)[number];

/** A user to create, as a line of a file describes it. */
export interface NewUser {
  line: number;
  name: string;
  display: string;
  email: string;
  /** The groups with the user's role in each. */
  groups: { id: string; role: Role }[];
  /** What is wrong with the line. */
  errors: string[];
}

/** What the lines of a file are checked against. */
export interface Known {
  /** The names of the users. */
  users: ReadonlySet<string>;
  /** The IDs of the groups, by name. */
  groups: ReadonlyMap<string, string>;
}

const columns = ["name", "display", "email", "groups", "role"] as const;
/** The columns that only an export has. */
const exported = ["admin", "disabled", "created", "seen"] as const;
type Column = (typeof columns)[number] | (typeof exported)[number];
const allColumns: readonly string[] = [...columns, ...exported];

/**
 * readUsers reads users from a CSV file, also from an export. The first line names the columns, of which only name is
 * required.
 * Problems of a line are in its errors; it throws an error about the whole file.
 */
export function readUsers(text: string, known: Known): NewUser[] {
  if (new TextEncoder().encode(text).length > maxBytes) throw new Error(msg("admin.csvTooLarge"));
  let rows: Row[];
  try {
    rows = parseCSV(text);
  } catch (error) {
    throw new Error(msg("admin.csvQuote", { where: (error as Error).message }), { cause: error });
  }
  const [head, ...lines] = rows;
  const names = (head?.cells ?? []).map((c) => c.toLowerCase());
  if (!names.includes("name")) throw new Error(msg("admin.csvHead"));
  const other = names.find((n, i) => !allColumns.includes(n) || names.indexOf(n) !== i);
  if (other !== undefined) throw new Error(msg("admin.csvColumn", { name: other || "?" }));
  if (lines.length > maxRows) throw new Error(msg("admin.csvTooMany", { n: lines.length, most: maxRows }));
  const first = new Map<string, number>(); // the line of each name
  return lines.map((row) => {
    const cell = (c: Column) => unquoted(row.cells[names.indexOf(c)] ?? "");
    const user = check(row, cell, known, row.cells.length > names.length);
    const before = first.get(user.name);
    if (before !== undefined) user.errors.push(msg("admin.csvTwice", { line: before }));
    else first.set(user.name, row.line);
    return user;
  });
}

function check(row: Row, cell: (c: Column) => string, known: Known, tooLong: boolean): NewUser {
  const errors: string[] = [];
  const name = cell("name");
  if (!/^[a-z0-9][a-z0-9._-]{0,63}$/.test(name)) errors.push(msg("admin.csvName"));
  else if (known.users.has(name)) errors.push(msg("admin.csvTaken"));
  else {
    if (isTrue(cell("admin"))) errors.push(msg("admin.csvAdmin"));
    if (isTrue(cell("disabled"))) errors.push(msg("admin.csvDisabled"));
  }
  const email = cell("email");
  if (email && !/^[^\s@]+@\S+$/.test(email)) errors.push(msg("admin.csvEmail"));
  if (email.length > 254 || cell("display").length > 200) errors.push(msg("admin.csvLong"));
  const written = cell("role").toLowerCase() || "reporter";
  const role = roles.find((r) => r === written);
  if (!role) errors.push(msg("admin.csvRole", { name: written, roles: roles.join(", ") }));
  const groups = new Map<string, Role>();
  for (const text of cell("groups").split(/[;,|]/)) {
    const g = text.trim().toLowerCase();
    const [, group, own] = /^(.+):(\w+)$/.exec(g) ?? [];
    const whole = known.groups.get(g);
    const id = whole ?? known.groups.get(group?.trim() ?? "");
    const ownRole = whole ? role : roles.find((r) => r === own);
    if (id && (whole || ownRole)) groups.set(id, ownRole ?? "reporter");
    else if (id) errors.push(msg("admin.csvRole", { name: own!, roles: roles.join(", ") }));
    else if (g) errors.push(msg("admin.csvGroup", { name: text.trim() }));
  }
  if (tooLong) errors.push(msg("admin.csvCells"));
  return {
    line: row.line,
    name,
    display: cell("display"),
    email,
    groups: Array.from(groups, ([id, role]) => ({ id, role })),
    errors,
  };
}

const isTrue = (cell: string) => !["", "false", "0", "no"].includes(cell.toLowerCase());

/** newPassword returns a random password without characters that look alike. */
export function newPassword(): string {
  const letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"; // 56 of 256 values each, no bias below 224
  let out = "";
  while (out.length < 20)
    for (const b of crypto.getRandomValues(new Uint8Array(32))) if (b < 224 && out.length < 20) out += letters[b % 56];
  return out;
}
