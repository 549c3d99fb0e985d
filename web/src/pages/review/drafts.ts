import { type Signal, signal } from "@preact/signals";
import type { Position } from "./position";

/** Drafts are the texts about a version that the user has not sent, by what they are for. */
export class Drafts {
  private readonly texts = new Map<string, string>();
  private started?: string;
  /** The keys of the open text boxes. */
  readonly open: Signal<string[]> = signal([]);

  /** Returns the text of a draft, or undefined if the user wrote none. */
  text = (key: string) => this.texts.get(key);

  keep(key: string, text: string) {
    this.texts.set(key, text);
    warnOfLoss();
  }

  /** Opens a text box, which gets the focus. */
  start(key: string) {
    this.started = key;
    this.open.value = [...this.open.value.filter((k) => k !== key), key];
  }

  /** Reports whether the user has just opened a text box. */
  isNew(key: string): boolean {
    if (this.started !== key) return false;
    this.started = undefined;
    return true;
  }

  /** Deletes a draft and closes its text box. */
  end(key: string) {
    this.texts.delete(key);
    warnOfLoss();
    this.open.value = this.open.value.filter((k) => k !== key);
  }

  /** Reports whether a text would be lost with the page. */
  hasText = () => [...this.texts.values()].some((text) => text.trim());

  /** Returns the positions at which the user writes new comments. */
  positions(): Position[] {
    return this.open.value.filter((k) => k.startsWith("[")).map(positionOfKey);
  }
}

const all = new Map<string, Drafts>();

const warn = (e: BeforeUnloadEvent) => e.preventDefault();

/** warnOfLoss makes the browser ask before the page is closed while any version has drafts, also on other pages. */
function warnOfLoss() {
  const lost = [...all.values()].some((drafts) => drafts.hasText());
  if (lost) addEventListener("beforeunload", warn);
  else removeEventListener("beforeunload", warn);
}

/** draftsOf returns the drafts about a version of a skill. They last as long as the page. */
export function draftsOf(skill: string, version: number): Drafts {
  const name = `${skill}/${version}`;
  if (!all.has(name)) all.set(name, new Drafts());
  return all.get(name)!;
}

/** keyOf returns the key of a new comment at a location. */
export const keyOf = (p: Position) => JSON.stringify([p.path ?? "", p.base ?? 0, p.line ?? 0]);

function positionOfKey(key: string): Position {
  const [path, base, line] = JSON.parse(key) as [string, number, number];
  return { ...(path && { path }), ...(base && { base }), ...(line && { line }) };
}

export const replyKey = (thread: string) => `reply ${thread}`;
export const editKey = (comment: string) => `edit ${comment}`;

/** The key of the comment of a decision. */
export const noteKey = "note";
