import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { api, got, type Schema } from "../api/client";
import { mayReview } from "../api/me";
import { ActionButton, Button, done, When } from "../ui";
import { useAddress } from "./address";
import { can } from "./detail";
import { Update } from "./update";
import { d } from "./words-detail";

type Skill = Schema["SkillDetail"];
type Version = Schema["SkillVersion"];

/** What there is of a skill that is newer than what is used. */
export interface News {
  /** A version after the current one, that nobody refused. */
  version?: Version;
  /** When it was told that its source has another commit. */
  upstream?: { commit: string; since: string };
}

/** Asks for what is newer; where that may not be known, there is nothing. */
export async function newsOf(skill: Skill, signal: AbortSignal): Promise<News> {
  const [versions, notices] = await Promise.all([
    skill.currentVersion ? got(api.GET("/api/v1/skills/{skill}/versions", { signal, params: { path: { skill: skill.id }, query: { limit: 10 } } })).catch(() => undefined) : undefined,
    skill.source && !skill.source.pinned ? got(api.GET("/api/v1/notices", { signal, params: { query: { skill: skill.id, limit: 20 } } })).catch(() => undefined) : undefined,
  ]);
  return {
    version: versions?.items.find((v) => v.number > skill.number && !(v.code && v.review === "rejected")),
    upstream: notices?.items.filter((n) => n.kind === "skill.upstream" && n.commit && n.commit !== skill.source?.commit && n.created > skill.source!.imported).map((n) => ({ commit: n.commit!, since: n.created }))[0],
  };
}

interface NewerProps {
  skill: Skill;
  news: News;
  again: () => Promise<void>;
}

/** Says what waits to be looked at, and what somebody may do about it. */
export function Newer({ skill, news, again }: NewerProps) {
  const now = skill.currentVersion;
  return (
    <>
      {news.version ? <Waits skill={skill} version={news.version} again={again} /> : now && unseen(now) && <InUse skill={skill} version={now} />}
      {news.upstream && <Upstream skill={skill} told={news.upstream} again={again} />}
    </>
  );
}

const unseen = (v: Version) => v.code && v.review === "pending";
const review = (skill: Skill, v: Version) => `/review/${encodeURIComponent(skill.id)}/${v.number}`;

function Waits({ skill, version: v, again }: Omit<NewerProps, "news"> & { version: Version }) {
  const at = useAddress();
  const t = d();
  const use = async () => {
    await got(api.POST("/api/v1/skills/{skill}/versions/{version}/use", { params: { path: { skill: skill.id, version: String(v.number) } } }));
    done(t.madeCurrent(v.number));
    await again();
  };
  const waits = unseen(v);
  return (
    <Line text={waits ? t.newerWaits(v.number, skill.number) : t.newer(v.number, skill.number)} time={v.created}>
      <a class="button small" href={at.with({ tab: "versions", from: String(skill.number), to: String(v.number), version: "", file: "", line: "" })}>{t.whatChanges}</a>
      {waits && mayReview(skill.namespace, v) && <a class="button small" href={review(skill, v)}>{t.review}</a>}
      {!waits && can(skill, "skill.change") && <ActionButton small act={use}>{t.makeCurrent}</ActionButton>}
    </Line>
  );
}

function InUse({ skill, version: v }: { skill: Skill; version: Version }) {
  const t = d();
  return <Line text={t.codeWaits} time={v.created}>{mayReview(skill.namespace, v) && <a class="button small" href={review(skill, v)}>{t.review}</a>}</Line>;
}

function Upstream({ skill, told, again }: Omit<NewerProps, "news"> & { told: NonNullable<News["upstream"]> }) {
  const [open, setOpen] = useState(false);
  const t = d();
  return (
    <>
      <Line text={t.newerAtSource(told.commit.slice(0, 10))} time={told.since}>
        {can(skill, "skill.change") && <Button small onClick={() => setOpen(true)}>{t.whatIsNew}</Button>}
      </Line>
      {open && <Update skill={skill} again={again} onClose={() => setOpen(false)} />}
    </>
  );
}

function Line({ text, time, children }: { text: string; time: string; children: ComponentChildren }) {
  return (
    <div class="note library-news">
      <div class="row"><span class="grow">{text} <span class="small muted"><When time={time} /></span></span>{children}</div>
    </div>
  );
}
