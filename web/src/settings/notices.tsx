import { useLocation } from "preact-iso";
import { api, got, type Schema, usePages } from "../api/client";
import { ActionButton, Button, done, Empty, More, Shown, Tag, When } from "../ui";
import { Part } from "./sections";
import { w } from "./words";

type Notice = Schema["Notice"];

/** What one was told of skills. What was seen is not told again. */
export function Notices() {
  const t = w();
  const { route, query } = useLocation();
  const all = query.all === "yes";
  const pages = usePages((after, signal) => got(api.GET("/api/v1/notices", { params: { query: { after, unseen: !all } }, signal })), [all]);
  const see = async (notices: Notice[]) => {
    await Promise.all(notices.map((n) => got(api.POST("/api/v1/notices/{notice}/seen", { params: { path: { notice: n.id } } }))));
    const seen = new Set(notices.map((n) => n.id));
    const now = new Date().toISOString();
    pages.set((pages.data ?? []).map((n) => (seen.has(n.id) ? { ...n, seen: now } : n)));
    if (notices.length > 1) done(t.saved);
  };
  const fresh = (pages.data ?? []).filter((n) => !n.seen);
  return (
    <Part title={t.tabs.notices} lead={t.noticesText} action={fresh.length > 1 && <ActionButton act={() => see(fresh)}>{t.markAll}</ActionButton>}>
      <div class="row" role="group" aria-label={t.tabs.notices}>
        <Button small look={all ? "quiet" : ""} aria-pressed={!all} onClick={() => route("/settings/notices")}>{t.unseen}</Button>
        <Button small look={all ? "" : "quiet"} aria-pressed={all} onClick={() => route("/settings/notices?all=yes")}>{t.all}</Button>
      </div>
      <Shown asked={pages}>
        {(notices) => notices.length === 0 ? <Empty title={t.noNotices}>{t.noNoticesText}</Empty> : <ul class="settings-list-rows">{notices.map((n) => <Told key={n.id} n={n} onSeen={() => see([n])} />)}</ul>}
      </Shown>
      <More pages={pages} />
    </Part>
  );
}

function Told({ n, onSeen }: { n: Notice; onSeen: () => Promise<void> }) {
  const t = w();
  const href = n.skill_id && n.kind !== "skill.removed" ? `/library/${n.skill_id}` : undefined;
  return (
    <li class={n.seen ? "" : "settings-unseen"}>
      <div class="grow">
        {!n.seen && <Tag look="accent">{t.isNew}</Tag>} {t.notice[n.kind]?.(n) ?? `${n.kind} ${n.name ?? ""}`} <span class="small muted"><When time={n.created} /></span>
        {n.note && <p class="small muted">{n.note}</p>}
      </div>
      <div class="row">
        {href && <a class="button small" href={href}>{t.look}</a>}
        {!n.seen && <ActionButton small act={onSeen}>{t.markSeen}</ActionButton>}
      </div>
    </li>
  );
}
