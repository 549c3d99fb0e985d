import { personName, usePeople } from "../account/people";
import type { Asked } from "../api/client";
import type { Schema } from "../api/client";
import { href } from "../servers/state";
import { Button, Problem, Tag, When } from "../ui";
import { pageOf, type Kind } from "./document";
import { w } from "./words";

/** What keeps an agent from working as it is meant, for who looks at it. */
export function Problems({ profile }: { profile: Asked<Schema["Profile"] | undefined> }) {
  const t = w();
  const p = profile.data;
  const unset = p?.servers.filter((s) => s.state === "not_configured") ?? [];
  const all = [...(p?.problems ?? []), ...(p?.model?.key === "missing" ? [t.keyMissing(p.model.name)] : []), ...(p?.enabled === false ? [t.switchedOff] : [])];
  return (
    <section class="card stack tight" aria-live="polite">
      <h2 class="row">{t.problems}{p && (all.length + unset.length ? <Tag look="warn">{all.length + unset.length}</Tag> : <Tag look="good">{t.fine}</Tag>)}</h2>
      {profile.error && <Problem error={profile.error} again={() => void profile.again()} />}
      {p && !all.length && !unset.length && <p class="small muted">{t.fineSays}</p>}
      {all.length + unset.length > 0 && (
        <ul class="agents-problems small">
          {unset.map((s) => <li key={s.name}>{t.unset(s.name)} <a href={s.kind === p?.kind ? href({ ...s, namespace: p?.namespace, thing: p?.name }) : `/servers?q=${encodeURIComponent(s.name)}`}>{t.giveValue}</a></li>)}
          {all.map((m) => <li key={m}>{m}</li>)}
        </ul>
      )}
      {p && <div><Button small look="quiet" icon="again" onClick={() => void profile.again()}>{t.lookAgain}</Button></div>}
    </section>
  );
}

/** What names a thing: it cannot go as long as something does. */
export function NamedBy({ referrers }: { referrers: Schema["References"] }) {
  const t = w();
  return (
    <section class="card stack tight">
      <h2>{t.namedBy}</h2>
      {referrers.seen.length + referrers.others === 0 && <p class="small muted">{t.namedByNone}</p>}
      <ReferrerList referrers={referrers} />
    </section>
  );
}

export function ReferrerList({ referrers }: { referrers: Schema["References"] }) {
  const t = w();
  return (
    <ul class="agents-problems small">
      {referrers.seen.map((r) => <li key={r.id + r.slot}><a href={pageOf({ kind: r.kind as Kind, namespace: r.namespace, name: r.name ?? "" })}>{r.kind} {r.name}</a>{r.slot && <span class="muted"> ({r.slot})</span>}</li>)}
      {referrers.others > 0 && <li>{t.namedByOthers(referrers.others)}</li>}
    </ul>
  );
}

/** Since when it is as it is. */
export function Facts({ kept }: { kept: Schema["Kind"] }) {
  usePeople();
  const t = w();
  return (
    <dl class="facts card">
      <dt>{t.changed}</dt><dd><When time={kept.status.updated} />{kept.status.changedBy && ` ${t.by} ${personName(kept.status.changedBy)}`}</dd>
      <dt>{t.made}</dt><dd><When time={kept.status.created} /> {t.by} {personName(kept.status.createdBy)}</dd>
      <dt>{t.generation}</dt><dd>{kept.status.generation}</dd>
    </dl>
  );
}
