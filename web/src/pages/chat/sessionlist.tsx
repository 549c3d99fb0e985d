import { useState } from "preact/hooks";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Waiting } from "../../shared/ui";
import { SessionRow } from "./sessionrow";
import { moreSessions, rest, type Session, sessions } from "./sessions";

/** SessionList lists the user's conversations by day. */
export function SessionList({ open, onOpen }: { open: string; onOpen?: () => void }) {
  const [find, setFind] = useState("");
  const all = sessions.value;
  const want = find.trim().toLowerCase();
  const shown = all?.filter((s) => !want || s.title.toLowerCase().includes(want)) ?? [];
  return (
    <nav class="chat-sessions" aria-label={msg("chat.conversations")}>
      <a class="button" href="/" onClick={onOpen} aria-current={open ? undefined : "page"}>
        {msg("chat.fresh")}
      </a>
      {!!all?.length && (
        <input
          class="input"
          type="search"
          value={find}
          placeholder={msg("chat.find")}
          aria-label={msg("chat.find")}
          onInput={(e) => setFind(e.currentTarget.value)}
        />
      )}
      <div class="list">
        {!all && <Waiting for={msg("chat.gettingList")} />}
        {all && !all.length && (
          <p class="small muted">
            <strong>{msg("chat.none")}</strong>
            <br />
            {msg("chat.noneText")}
          </p>
        )}
        {!!all?.length && !shown.length && <p class="small muted">{msg("chat.noneFound")}</p>}
        {byDay(shown).map(([day, some]) => (
          <section key={day} aria-label={day}>
            <h2 class="day">{day}</h2>
            <ul>
              {some.map((s) => (
                <SessionRow key={s.id} session={s} here={s.id === open} onOpen={onOpen} />
              ))}
            </ul>
          </section>
        ))}
        {rest.value && (
          <div class="row">
            <ActionButton small act={moreSessions}>
              {msg("ui.more")}
            </ActionButton>
          </div>
        )}
      </div>
      <a class="small muted" href="/settings/migrate?system=loadout" onClick={onOpen}>
        {msg("chat.importConversations")}
      </a>
    </nav>
  );
}

/** byDay groups conversations by age. */
function byDay(all: Session[]): [string, Session[]][] {
  const midnight = new Date().setHours(0, 0, 0, 0);
  const day = 86_400_000;
  const name = (s: Session) => {
    const at = Date.parse(s.created);
    return at >= midnight
      ? msg("chat.today")
      : at >= midnight - day
        ? msg("chat.yesterday")
        : at >= midnight - 6 * day
          ? msg("chat.week")
          : msg("chat.older");
  };
  const out = new Map<string, Session[]>();
  for (const s of all) out.set(name(s), [...(out.get(name(s)) ?? []), s]);
  return [...out];
}
