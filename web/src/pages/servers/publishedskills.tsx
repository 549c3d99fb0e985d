import type { Server } from "../../features/servers/state";
import { api, got, useLoad, type Schema } from "../../shared/api/client";
import { size } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, done, Empty, Shown, Tag, When } from "../../shared/ui";

type Skill = Schema["PublishedSkill"];

const list = (label: string, refresh: boolean, signal?: AbortSignal) =>
  got(api.GET("/api/v1/published-skills/{label}", { params: { path: { label }, query: { refresh } }, signal }));

const approve = (label: string, s: Skill) =>
  got(
    api.POST("/api/v1/published-skills/{label}/approve", {
      params: { path: { label } },
      body: { path: s.path, digest: s.digest! },
    }),
  );

const revoke = (label: string, s: Skill) =>
  got(api.DELETE("/api/v1/published-skills/{label}/approve", { params: { path: { label }, query: { path: s.path } } }));

/** PublishedSkills shows the skills that a server publishes, and the user's approvals. */
export function PublishedSkills({ label, server }: { label: string; server: Server }) {
  const load = useLoad((signal) => list(label, false, signal), [label]);
  const refresh = async () => {
    await list(label, true);
    await load.again();
  };
  const change = async (request: Promise<unknown>, says: string) => {
    await request;
    done(says);
    await load.again();
  };
  return (
    <section class="stack tight">
      <h2>{msg("servers.skills")}</h2>
      <p class="small muted">{msg(server.skills?.use === "allow" ? "servers.skillsAllow" : "servers.skillsAsk")}</p>
      <Shown asked={load} waiting={msg("servers.skillsGetting")}>
        {(all) => (
          <>
            {all.partial && <p class="note warn">{msg("servers.skillsPartial", { why: all.partial })}</p>}
            {all.skills.length ? (
              <ul class="servers-skills">
                {all.skills.map((s) => (
                  <Published
                    key={s.name}
                    skill={s}
                    onApprove={() => change(approve(label, s), msg("servers.skillApproved", { name: s.name }))}
                    onRevoke={() => change(revoke(label, s), msg("servers.skillRevoked", { name: s.name }))}
                  />
                ))}
              </ul>
            ) : (
              <Empty title={msg("servers.skillsNone")}>{msg("servers.skillsNoneSays")}</Empty>
            )}
            {all.problems?.map((p) => (
              <p key={p} class="small muted">
                {p}
              </p>
            ))}
            <p class="small muted">
              {msg("servers.skillsEndpoint")} <code>{location.origin + all.endpoint}</code>
            </p>
          </>
        )}
      </Shown>
      <div>
        <ActionButton icon="again" act={refresh}>
          {msg("servers.skillsRefresh")}
        </ActionButton>
      </div>
    </section>
  );
}

const looks = { approved: "good", changed: "warn", not_approved: "", not_required: "" } as const;

function Published(of: { skill: Skill; onApprove: () => Promise<unknown>; onRevoke: () => Promise<unknown> }) {
  const s = of.skill;
  const asks = !!s.digest && s.state !== "approved"; // code runs only after an approval, even with skills: allow
  const approved = s.state === "approved" || s.state === "changed";
  return (
    <li class="stack tight">
      <p class="row">
        <code class="servers-text">{s.name}</code>
        <Tag look={looks[s.state]}>{msg(`servers.skillStates.${s.state}`)}</Tag>
        {s.approved && (
          <span class="small muted">
            <When time={s.approved} />
          </span>
        )}
      </p>
      <p class="servers-text">{s.description}</p>
      <p class="small muted">
        {s.digest ? msg("servers.skillFiles", { count: s.files, size: size(s.bytes) }) : msg("servers.skillGenerated")}
      </p>
      {!!s.changes?.length && (
        <ul class="small">
          {s.changes.map((c) => (
            <li key={c.path}>
              <code>{c.path}</code> {msg(`servers.skillFile.${c.kind}`)}
            </li>
          ))}
        </ul>
      )}
      {(asks || approved) && (
        <div class="row">
          {asks && (
            <ActionButton small icon="check" label={`${msg("servers.skillApprove")}: ${s.name}`} act={of.onApprove}>
              {msg("servers.skillApprove")}
            </ActionButton>
          )}
          {approved && (
            <ActionButton small label={`${msg("servers.skillRevoke")}: ${s.name}`} act={of.onRevoke}>
              {msg("servers.skillRevoke")}
            </ActionButton>
          )}
        </div>
      )}
    </li>
  );
}
