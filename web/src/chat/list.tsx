import { useState } from "preact/hooks";
import { ActionButton, Waiting } from "../ui";
import { w as ui } from "../ui/words";
import { moreSessions, rest, type Session, sessions } from "./sessions";
import { SessionRow } from "./listrow";
import { w } from "./words";

/** The conversations of who is signed in, by day. */
export function SessionList({ open, onOpen }: { open: string; onOpen?: () => void }) {
  const t = w();
  const [find, setFind] = useState("");
  const all = sessions.value;
  const want = find.trim().toLowerCase();
  const shown = all?.filter((s) => !want || s.title.toLowerCase().includes(want)) ?? [];
  return (
    <nav class="chat-sessions" aria-label={t.conversations}>
      <a class="button" href="/" onClick={onOpen} aria-current={open ? undefined : "page"}>{t.fresh}</a>
      {!!all?.length && <input class="input" type="search" value={find} placeholder={t.find} aria-label={t.find} onInput={(e) => setFind(e.currentTarget.value)} />}
      <div class="list">
        {!all && <Waiting for={t.gettingList} />}
        {all && !all.length && <p class="small muted"><strong>{t.none}</strong><br />{t.noneText}</p>}
        {!!all?.length && !shown.length && <p class="small muted">{t.noneFound}</p>}
        {byDay(shown).map(([day, some]) => (
          <section key={day} aria-label={day}>
            <h2 class="day">{day}</h2>
            <ul>{some.map((s) => <SessionRow key={s.id} session={s} here={s.id === open} onOpen={onOpen} />)}</ul>
          </section>
        ))}
        {rest.value && <div class="row"><ActionButton small act={moreSessions}>{ui().more}</ActionButton></div>}
      </div>
    </nav>
  );
}

/** Conversations by how long ago they began, in their order. */
function byDay(all: Session[]): [string, Session[]][] {
  const t = w();
  const midnight = new Date().setHours(0, 0, 0, 0);
  const day = 86_400_000;
  const name = (s: Session) => {
    const at = Date.parse(s.created);
    return at >= midnight ? t.today : at >= midnight - day ? t.yesterday : at >= midnight - 6 * day ? t.week : t.older;
  };
  const out = new Map<string, Session[]>();
  for (const s of all) out.set(name(s), [...(out.get(name(s)) ?? []), s]);
  return [...out];
}
