import { useLocation } from "preact-iso";
import { useUserNames } from "../../features/skills/namespaces";
import { api, got, type Schema, usePages } from "../../shared/api/client";
import { findMsg, msg } from "../../shared/i18n/messages";
import { ActionButton, Button, done, Empty, More, Shown, Tag, When } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";

type Notice = Schema["Notice"];

/** Notices lists the notifications of the user. */
export function Notices() {
  const { route, query } = useLocation();
  const all = query.all === "yes";
  const pages = usePages(
    (after, signal) => got(api.GET("/api/v1/notices", { params: { query: { after, unseen: !all } }, signal })),
    [all],
  );
  const see = async (notices: Notice[]) => {
    await Promise.all(
      notices.map((n) => got(api.POST("/api/v1/notices/{notice}/seen", { params: { path: { notice: n.id } } }))),
    );
    const seen = new Set(notices.map((n) => n.id));
    const now = new Date().toISOString();
    pages.set((pages.data ?? []).map((n) => (seen.has(n.id) ? { ...n, seen: now } : n)));
    if (notices.length > 1) done(msg("settings.markedAll"));
  };
  const fresh = (pages.data ?? []).filter((n) => !n.seen);
  return (
    <Part
      title={msg("settings.tabs.notices")}
      lead={msg("settings.noticesText")}
      action={
        fresh.length > 1 && (
          <ActionButton act={() => see(fresh)}>
            {pages.more ? msg("settings.markShown") : msg("settings.markAll")}
          </ActionButton>
        )
      }
    >
      <div class="row" role="group" aria-label={msg("settings.tabs.notices")}>
        <Button small look={all ? "quiet" : ""} aria-pressed={!all} onClick={() => route("/settings/notices")}>
          {msg("settings.unseen")}
        </Button>
        <Button small look={all ? "" : "quiet"} aria-pressed={all} onClick={() => route("/settings/notices?all=yes")}>
          {msg("settings.all")}
        </Button>
      </div>
      <Shown asked={pages}>
        {(notices) =>
          notices.length === 0 ? (
            <Empty title={msg("settings.noNotices")}>{msg("settings.noNoticesText")}</Empty>
          ) : (
            <ul class="settings-list-rows">
              {notices.map((n) => (
                <Told key={n.id} n={n} onSeen={() => see([n])} />
              ))}
            </ul>
          )
        }
      </Shown>
      <More pages={pages} />
    </Part>
  );
}

/** noticeText says what a notice is about. */
function noticeText({ kind, name = "", number = 0, review }: Notice, by: string): string {
  const key = kind === "skill.review" ? `${kind}.${review || "pending"}` : kind;
  return findMsg("settings.notice", key, { name, number: String(number), by }) ?? `${kind} ${name}`;
}

/** noticeLink returns the page that a notice is about. */
function noticeLink(n: Notice): string | undefined {
  if (!n.skill_id || n.kind === "skill.removed") return undefined;
  const reviewed = n.kind === "skill.comment" || n.kind === "skill.review";
  if (!reviewed || !n.number) return `/library/${n.skill_id}`;
  return `/review/${n.skill_id}/${n.number}${n.thread ? `#thread-${n.thread}` : ""}`;
}

function Told({ n, onSeen }: { n: Notice; onSeen: () => Promise<void> }) {
  const person = useUserNames();
  const href = noticeLink(n);
  return (
    <li class={n.seen ? "" : "settings-unseen"}>
      <div class="grow">
        {!n.seen && <Tag look="accent">{msg("settings.isNew")}</Tag>} {noticeText(n, n.by ? person(n.by) : "")}{" "}
        <span class="small muted">
          <When time={n.created} />
        </span>
        {n.note && <p class="small muted">{n.note}</p>}
      </div>
      <div class="row">
        {href && (
          <a class="button small" href={href}>
            {msg("settings.look")}
          </a>
        )}
        {!n.seen && (
          <ActionButton small act={onSeen}>
            {msg("settings.markSeen")}
          </ActionButton>
        )}
      </div>
    </li>
  );
}
