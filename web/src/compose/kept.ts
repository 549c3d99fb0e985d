import { me } from "../api/me";
import type { DraftFile } from "./files";

/** Work that is not saved on the hub, as this browser keeps it. */
export interface Kept {
  /** The id of the skill it is a version of, or one of its own. */
  key: string;
  /** Of the skill that it is to be a version of. */
  of?: string;
  /** The number of the version that it began with. */
  base?: number;
  name: string;
  at: string;
  files: DraftFile[];
  namespace?: string;
  /** Whether anything was written yet. */
  touched: boolean;
}

/** The bounds: how much of one piece of work is kept, and how many pieces. */
const mostLetters = 1_500_000;
const mostKept = 12;

/** Also in memory, for a browser that keeps nothing. */
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

/** Puts a text into the browser, and says whether it is there after a reload. */
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
    // then there was nothing
  }
}

/** The work that is kept under a key. */
export function kept(key: string): Kept | undefined {
  return parsed(get(prefix() + key));
}

function parsed(text: string | null): Kept | undefined {
  try {
    const work = JSON.parse(text ?? "null") as Kept | null;
    return work && Array.isArray(work.files) ? work : undefined;
  } catch {
    return undefined;
  }
}

/** Keeps work, and says whether it is there after a reload; the oldest goes where there is too much. */
export function keep(work: Kept): boolean {
  const text = JSON.stringify(work);
  const name = prefix() + work.key;
  if (text.length > mostLetters) {
    drop(name);
    here.set(name, text);
    return false;
  }
  for (const old of allKept().filter((k) => k.key !== work.key).slice(mostKept - 1)) drop(prefix() + old.key);
  return put(name, text);
}

export const forget = (key: string) => drop(prefix() + key);

/** All work that is kept, the newest first. */
export function allKept(): Kept[] {
  const names = new Set<string>(here.keys());
  try {
    for (let i = 0; i < localStorage.length; i++) names.add(localStorage.key(i)!);
  } catch {
    // then what is in memory is all
  }
  const mine = [...names].filter((n) => n.startsWith(prefix()));
  return mine.map((n) => parsed(get(n))).filter((k): k is Kept => k !== undefined).sort((a, b) => (a.at < b.at ? 1 : -1));
}

/** What a skill should be found for, one request a line. It stays when the work is saved. */
export const requestsOf = (key: string): string => get(requestsName(key)) ?? "";

export function keepRequests(key: string, text: string) {
  if (text.trim()) put(requestsName(key), text.slice(0, 20_000));
  else drop(requestsName(key));
}

/** A key for work on a new skill. */
export const newKey = (): string => `new-${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}`;
