import type { Load, Schema } from "../../shared/api/client";
import { findMsg, msg } from "../../shared/i18n/messages";
import { Button, Problem, Tag, When } from "../../shared/ui";
import { href } from "../servers/state";
import { userName, useUserNames } from "../users/users";
import { pageOf, type Kind } from "./document";

/** Problems lists the problems that the agent has for the current user. */
export function Problems({ profile }: { profile: Load<Schema["Profile"] | undefined> }) {
  const p = profile.data;
  const unset = p?.servers.filter((s) => s.state === "not_configured") ?? [];
  const all = [
    ...(p?.problems ?? []),
    ...(p?.model?.key === "missing" ? [msg("agents.keyMissing", { name: p.model.name })] : []),
    ...(p?.enabled === false ? [msg("agents.switchedOff")] : []),
  ];
  return (
    <section class="card stack tight" aria-live="polite">
      <h2 class="row">
        {msg("agents.problems")}
        {p &&
          (all.length + unset.length ? (
            <Tag look="warn">{all.length + unset.length}</Tag>
          ) : (
            <Tag look="good">{msg("agents.fine")}</Tag>
          ))}
      </h2>
      {profile.error && <Problem error={profile.error} again={() => void profile.again()} />}
      {p && !all.length && !unset.length && <p class="small muted">{msg("agents.fineSays")}</p>}
      {all.length + unset.length > 0 && (
        <ul class="agents-problems small">
          {unset.map((s) => (
            <li key={s.name}>
              {msg("agents.unset", { name: s.name })}{" "}
              <a
                href={
                  s.kind === p?.kind
                    ? href({ ...s, namespace: p?.namespace, thing: p?.name })
                    : `/servers?q=${encodeURIComponent(s.name)}`
                }
              >
                {msg("agents.giveValue")}
              </a>
            </li>
          ))}
          {all.map((m) => (
            <li key={m}>{m}</li>
          ))}
        </ul>
      )}
      {p && (
        <div>
          <Button small look="quiet" icon="again" onClick={() => void profile.again()}>
            {msg("agents.lookAgain")}
          </Button>
        </div>
      )}
    </section>
  );
}

/** NamedBy lists the references to a resource. They prevent its deletion. */
export function NamedBy({ referrers }: { referrers: Schema["References"] }) {
  return (
    <section class="card stack tight">
      <h2>{msg("agents.namedBy")}</h2>
      {referrers.seen.length + referrers.others === 0 && <p class="small muted">{msg("agents.namedByNone")}</p>}
      <ReferrerList referrers={referrers} />
    </section>
  );
}

export function ReferrerList({ referrers }: { referrers: Schema["References"] }) {
  return (
    <ul class="agents-problems small">
      {referrers.seen.map((r) => (
        <li key={r.id + r.slot}>
          <a href={pageOf({ kind: r.kind as Kind, namespace: r.namespace, name: r.name ?? "" })}>
            {findMsg("skill.kinds", r.kind) ?? r.kind} {r.name}
          </a>
          {r.slot && <span class="muted"> ({r.slot})</span>}
        </li>
      ))}
      {referrers.others > 0 && <li>{msg("agents.namedByOthers", { n: referrers.others })}</li>}
    </ul>
  );
}

/** Facts shows when the resource was created and changed. */
export function Facts({ saved }: { saved: Schema["Kind"] }) {
  useUserNames();

  return (
    <dl class="facts card">
      <dt>{msg("agents.changed")}</dt>
      <dd>
        <When time={saved.status.updated} />
        {saved.status.changedBy && ` ${msg("agents.by")} ${userName(saved.status.changedBy)}`}
      </dd>
      <dt>{msg("agents.made")}</dt>
      <dd>
        <When time={saved.status.created} /> {msg("agents.by")} {userName(saved.status.createdBy)}
      </dd>
      <dt>{msg("agents.generation")}</dt>
      <dd>{saved.status.generation}</dd>
    </dl>
  );
}
