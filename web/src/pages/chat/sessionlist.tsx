import { ErrorBoundary } from "preact-iso";
import { overlay } from "../../features/shortcuts/commands";
import { ariaKeys, keyText } from "../../features/shortcuts/keys";
import { msg, withRest } from "../../shared/i18n/messages";
import { ActionButton, Button, Icon, Waiting } from "../../shared/ui";
import { lazyPart } from "../../shared/ui/lazypart";
import { SessionRow } from "./sessionrow";
import { folders, listOf, more, pinned, type Session, showArchived, unfiled, unpinned } from "./sessions";

const FolderList = lazyPart(() => withRest(import("./folderlist")));
const ArchivedList = lazyPart(() => withRest(import("./archivedlist")));

export interface ListProps {
  /** The ID of the open conversation. */
  open: string;
  onOpen?: () => void;
}

/** SessionList lists the user's conversations: the pinned ones, the folders, and the others by day. */
export function SessionList({ open, onOpen }: ListProps) {
  const list = listOf(unfiled);
  const empty = list && !list.items.length && !folders.value?.length;
  return (
    <nav class="chat-sessions" aria-label={msg("chat.conversations")}>
      <a class="button" href="/" onClick={onOpen} aria-current={open ? undefined : "page"}>
        {msg("chat.fresh")}
      </a>
      {list && !empty && (
        <button
          type="button"
          class="input chat-find"
          aria-haspopup="dialog"
          aria-keyshortcuts={ariaKeys("palette")}
          onClick={() => (overlay.value = "palette")}
        >
          <Icon name="search" size={16} />
          <span class="grow truncate">{msg("chat.find")}</span>
          <kbd aria-hidden="true">{keyText("palette")}</kbd>
        </button>
      )}
      <div class="list">
        {showArchived.value ? (
          <ErrorBoundary>
            <ArchivedList open={open} onOpen={onOpen} />
          </ErrorBoundary>
        ) : (
          <>
            {!list && <Waiting for={msg("chat.gettingList")} />}
            {empty && (
              <p class="small muted">
                <strong>{msg("chat.none")}</strong>
                <br />
                {msg("chat.noneText")}
              </p>
            )}
            <Section title={msg("chat.pinned")} sessions={pinned()} open={open} onOpen={onOpen} />
            {!!folders.value?.length && (
              <ErrorBoundary>
                <FolderList open={open} onOpen={onOpen} />
              </ErrorBoundary>
            )}
            {byDay(unpinned(unfiled)).map(([day, some]) => (
              <Section key={day} title={day} sessions={some} open={open} onOpen={onOpen} />
            ))}
            <MoreSessions name={unfiled} />
          </>
        )}
      </div>
      <div class="small chat-list-foot">
        {!showArchived.value && (
          <Button small look="quiet" icon="folder" onClick={() => (showArchived.value = true)}>
            {msg("chat.archived")}
          </Button>
        )}
        <a class="muted" href="/settings/migrate?system=loadout" onClick={onOpen}>
          {msg("chat.importConversations")}
        </a>
      </div>
    </nav>
  );
}

function Section({ title, sessions, ...rest }: ListProps & { title: string; sessions: Session[] }) {
  if (!sessions.length) return null;
  return (
    <section aria-label={title}>
      <h2 class="day">{title}</h2>
      <Rows sessions={sessions} {...rest} />
    </section>
  );
}

/** Rows lists conversations. */
export function Rows({ sessions, open, onOpen }: ListProps & { sessions: Session[] }) {
  return (
    <ul>
      {sessions.map((s) => (
        <SessionRow key={s.id} session={s} here={s.id === open} onOpen={onOpen} />
      ))}
    </ul>
  );
}

/** MoreSessions is the button that loads the next page of a list, if there is one. */
export function MoreSessions({ name }: { name: string }) {
  if (!listOf(name)?.next) return null;
  return (
    <div class="row">
      <ActionButton small act={() => more(name)}>
        {msg("ui.more")}
      </ActionButton>
    </div>
  );
}

/** byDay groups conversations by the time of the last message. */
function byDay(all: Session[]): [string, Session[]][] {
  const midnight = new Date().setHours(0, 0, 0, 0);
  const day = 86_400_000;
  const name = (s: Session) => {
    const at = Date.parse(s.last_message);
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
