import { front } from "../../features/shortcuts/commands";
import { ariaKeys, keyText } from "../../features/shortcuts/keys";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Icon, Waiting } from "../../shared/ui";
import { SessionRow } from "./sessionrow";
import { moreSessions, rest, type Session, sessions } from "./sessions";

/** SessionList lists the user's conversations by day. */
export function SessionList({ open, onOpen }: { open: string; onOpen?: () => void }) {
  const all = sessions.value;
  return (
    <nav class="chat-sessions" aria-label={msg("chat.conversations")}>
      <a class="button" href="/" onClick={onOpen} aria-current={open ? undefined : "page"}>
        {msg("chat.fresh")}
      </a>
      {!!all?.length && (
        <button
          type="button"
          class="input chat-find"
          aria-haspopup="dialog"
          aria-keyshortcuts={ariaKeys("palette")}
          onClick={() => (front.value = "palette")}
        >
          <Icon name="search" size={16} />
          <span class="grow truncate">{msg("chat.find")}</span>
          <kbd aria-hidden="true">{keyText("palette")}</kbd>
        </button>
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
        {byDay(all ?? []).map(([day, some]) => (
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
