import type { ComponentChildren } from "preact";
import { Icon } from "../ui";
import { store, stored } from "../words";
import { w } from "./backwords";

const key = "loadout.compose.trials";

/** How many trials are remembered. */
const most = 30;

type Trials = [session: string, place: string][];

function trials(): Trials {
  try {
    const list = JSON.parse(stored(key) ?? "[]") as unknown;
    return Array.isArray(list) ? (list as Trials) : [];
  } catch {
    return [];
  }
}

/** Remembers where a conversation was begun to try a skill, so that there is a way back. */
export const rememberTrial = (session: string, place: string) => store(key, JSON.stringify([[session, place], ...trials()].slice(0, most)));

/** The way back from the trial of a draft to where it is written; for a trial that began elsewhere what is in it. For the chat. */
export function BackToDraft({ session, name, children }: { session: string; name: string; children: ComponentChildren }) {
  const place = trials().find(([s]) => s === session)?.[1];
  if (!place?.startsWith("/compose")) return children;
  return (
    <a class="button small truncate" href={place} title={w().back(name)} aria-label={w().back(name)}>
      <Icon name="left" size={16} /><span class="truncate">{w().draft(name)}</span>
    </a>
  );
}
