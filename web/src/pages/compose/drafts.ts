import { me } from "../../shared/api/me";
import type { DraftFile } from "./files";

/** A draft in the browser's storage. */
export interface StoredDraft {
  /** The skill ID, or a key of its own for a new skill. */
  key: string;
  /** The ID of the skill that gets a new version. */
  of?: string;
  /** The version that the draft is based on. */
  base?: number;
  name: string;
  at: string;
  files: DraftFile[];
  namespace?: string;
  /** Whether the user changed anything. */
  touched: boolean;
}

/** The maximum size of a draft. Only the storage of the browser limits the number of drafts. */
const mostLetters = 1_500_000;

/** A copy in memory, in case the browser refuses storage. */
const here = new Map<string, string>();

const prefix = () => `loadout.compose.${me.value?.user.id ?? ""}.work.`;
const requestsName = (key: string) => `loadout.compose.${me.value?.user.id ?? ""}.requests.${key}`;

function get(name: string): string | null {
  const known = here.get(name);
  if (known !== undefined) return known;
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** put stores a text and reports whether it survives a reload. */
function put(name: string, text: string): boolean {
  here.set(name, text);
  try {
    localStorage.setItem(name, text);
    return true;
  } catch {
    return false;
  }
}

function drop(name: string) {
  here.delete(name);
  try {
    localStorage.removeItem(name);
  } catch {
    // nothing was stored
  }
}

/** storedDraft returns the draft with a key. */
export function storedDraft(key: string): StoredDraft | undefined {
  return parsed(get(prefix() + key));
}

function parsed(text: string | null): StoredDraft | undefined {
  try {
    const work = JSON.parse(text ?? "null") as StoredDraft | null;
    return work && Array.isArray(work.files) ? work : undefined;
  } catch {
    return undefined;
  }
}

/** storeDraft stores a draft and reports whether it survives a reload. It does not change other drafts. */
export function storeDraft(work: StoredDraft): boolean {
  const text = JSON.stringify(work);
  const name = prefix() + work.key;
  if (text.length > mostLetters) {
    drop(name);
    here.set(name, text);
    return false;
  }
  return put(name, text);
}

export const deleteDraft = (key: string) => drop(prefix() + key);

/** moveDraft stores a draft in place of the one with another key. Only one of them may fit into the browser's storage. */
export function moveDraft(from: string, work: StoredDraft) {
  const old = storedDraft(from);
  if (storeDraft(work)) return deleteDraft(from);
  deleteDraft(from);
  if (!storeDraft(work) && old) storeDraft(old);
}

/** listDrafts returns all drafts, newest first. */
export function listDrafts(): StoredDraft[] {
  const names = new Set<string>(here.keys());
  try {
    for (let i = 0; i < localStorage.length; i++) names.add(localStorage.key(i)!);
  } catch {
    // only the drafts in memory remain
  }
  const mine = [...names].filter((n) => n.startsWith(prefix()));
  return mine
    .map((n) => parsed(get(n)))
    .filter((k): k is StoredDraft => k !== undefined)
    .sort((a, b) => (a.at < b.at ? 1 : -1));
}

/** requestsOf returns the requests of the search preview, one per line. They stay after a save. */
export const requestsOf = (key: string): string => get(requestsName(key)) ?? "";

export function keepRequests(key: string, text: string) {
  if (text.trim()) put(requestsName(key), text.slice(0, 20_000));
  else drop(requestsName(key));
}

/** newKey returns a key for the draft of a new skill. */
export const newKey = (): string => `new-${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}`;
