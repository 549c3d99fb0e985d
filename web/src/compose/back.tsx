import { Icon } from "../ui";
import { store, stored } from "../words";
import { w } from "./backwords";

const name = "loadout.compose.trials";

/** How many trials are remembered. */
const most = 30;

type Trials = [session: string, place: string][];

function trials(): Trials {
  try {
    const list = JSON.parse(stored(name) ?? "[]") as unknown;
    return Array.isArray(list) ? (list as Trials) : [];
  } catch {
    return [];
  }
}

/** Remembers where a conversation was begun to try a skill, so that there is a way back. */
export const rememberTrial = (session: string, place: string) => store(name, JSON.stringify([[session, place], ...trials()].slice(0, most)));

/** The way back from the trial of a draft to where it is written; nothing for another conversation. For the chat. */
export function BackToDraft({ session }: { session: string }) {
  const place = trials().find(([s]) => s === session)?.[1];
  if (!place?.startsWith("/compose")) return null;
  return <a class="button small" href={place}><Icon name="left" size={16} />{w().back}</a>;
}
