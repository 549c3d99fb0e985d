import type { ComponentChildren } from "preact";
import { msg } from "../../shared/i18n/messages";
import { store, stored } from "../../shared/i18n/storage";
import { Icon } from "../../shared/ui";

const key = "loadout.compose.trials";

/** The number of trials to remember. */
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

/** rememberTrial stores the page of the draft or version that a conversation tries, for the way back. */
export const rememberTrial = (session: string, place: string) =>
  store(key, JSON.stringify([[session, place], ...trials()].slice(0, most)));

/**
 * BackToDraft links from a trial in the chat to its draft or version. Its children show if the trial
 * started elsewhere.
 */
export function BackToDraft({
  session,
  name,
  children,
}: {
  session: string;
  name: string;
  children: ComponentChildren;
}) {
  const place = trials().find(([s]) => s === session)?.[1];
  if (!place || !/^\/(compose|library|review)\b/.test(place)) return children;
  const draft = place.startsWith("/compose");
  const label = msg(draft ? "back.back" : "back.toVersion", { name });
  return (
    <a class="button small truncate" href={place} title={label} aria-label={label}>
      <Icon name="left" size={16} />
      <span class="truncate">{msg(draft ? "back.draft" : "back.version", { name })}</span>
    </a>
  );
}
