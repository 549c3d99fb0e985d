import { signal } from "@preact/signals";
import type en from "./en.json";
import { count } from "./format";
import { language } from "./language";

/** A key of a message; a key with plural forms is written without its suffix. */
export type MessageKey = keyof typeof en extends infer K
  ? K extends `${infer Base}_${"one" | "other"}`
    ? Base
    : K
  : never;

/** The messages of a language, by key. */
export type Messages = Record<string, string>;

type Files = Record<string, () => Promise<Messages>>;

/** Both halves of the message files, by path. The rest is loaded with the first page that needs it. */
let files: { start: Files; rest: Files } = { start: {}, rest: {} };

/** The tags of the languages that have a message file. */
export let languages: string[] = [];

const messages = signal<Messages>({});
let wantsRest = false;
let restOf = ""; // the language whose rest is loaded
let shown: () => void;
const firstShown = new Promise<void>((resolve) => (shown = resolve));

/** setMessageFiles sets the loaders of the message files. A new file adds a language. */
export function setMessageFiles(start: Files, rest: Files): void {
  files = { start, rest };
  languages = Object.keys(start).map((path) => /([^/]+)\.json/.exec(path)![1]!);
}

const load = async (part: Files, code: string): Promise<Messages> =>
  (await Object.entries(part).find(([path]) => path.includes(`/${code}.json`))?.[1]()) ?? {};

/** loadMessages loads the messages of a language and shows the page in it. */
export async function loadMessages(code: string): Promise<void> {
  const whole = wantsRest;
  const rest = whole ? load(files.rest, code) : undefined;
  const start = await load(files.start, code);
  // For the first language, loadRest loads the rest again after a failure, and reports it on the page.
  const first = !Object.keys(messages.value).length;
  const more = await (first ? rest?.catch(() => undefined) : rest);
  messages.value = { ...start, ...more };
  restOf = more ? code : "";
  language.value = code;
  document.documentElement.lang = code;
  shown();
}

/** loadRest loads the messages that the first pages do without, for the first language together with the others. */
export async function loadRest(): Promise<void> {
  if (wantsRest) return;
  wantsRest = true;
  await firstShown;
  const code = language.value;
  if (restOf === code) return;
  try {
    const rest = await load(files.rest, code);
    if (language.value !== code) return; // loadMessages loads the rest of another one
    messages.value = { ...messages.value, ...rest };
    restOf = code;
  } catch (error) {
    wantsRest = false;
    throw error;
  }
}

/** withRest loads a page together with the messages that the first pages do without. */
export const withRest = async <T>(page: Promise<T>): Promise<T> => (await Promise.all([page, loadRest()]))[0];

/**
 * msg returns a message in the language of the page. It replaces each {{name}} by the parameter
 * of that name. The parameter `count` also selects the plural form. Numbers are formatted.
 */
export function msg(key: MessageKey, params: Record<string, string | number> = {}): string {
  const text = fill(messages.value, key, params);
  if (text === undefined && !wantsRest) void loadRest();
  return text ?? key;
}

/** findMsg returns the message with the key `group.name`, or undefined if there is none. */
export function findMsg(group: string, name: string, params: Record<string, string | number> = {}): string | undefined {
  if (!wantsRest && !Object.keys(messages.value).some((key) => key.startsWith(`${group}.`))) void loadRest();
  return fill(messages.value, `${group}.${name}`, params);
}

/** messagesOf returns the messages of a group as pairs of name and text. */
export const messagesOf = (group: string): [name: string, text: string][] =>
  Object.entries(messages.value).flatMap(([key, text]) =>
    key.startsWith(`${group}.`) ? [[key.slice(group.length + 1), text]] : [],
  );

function fill(all: Messages, key: string, params: Record<string, string | number>): string | undefined {
  const text = (typeof params.count === "number" ? pluralForm(all, key, params.count) : undefined) ?? all[key];
  return text?.replace(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = params[name];
    return typeof value === "number" ? count(value) : (value ?? "");
  });
}

const pluralForm = (all: Messages, key: string, n: number): string | undefined =>
  all[`${key}_${new Intl.PluralRules(language.value).select(n)}`] ?? all[`${key}_other`];
