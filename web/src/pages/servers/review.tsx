import { useState } from "preact/hooks";
import type { Server } from "../../features/servers/state";
import { userName, useUserNames } from "../../features/users/users";
import { api, got, type Schema } from "../../shared/api/client";
import { isAdmin, me } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, AreaField, done, Problem, Tag } from "../../shared/ui";

type Decision = Schema["ServerDecision"]["decision"];

/** Review shows the exact command of a server and records the decision. */
export function Review({ server, onChange }: { server: Server; onChange: () => void }) {
  useUserNames();

  const [note, setNote] = useState("");
  const [error, setError] = useState<unknown>();
  const review = server.review;
  if (!review || !server.command) return null;
  const decide = async (decision: Decision) => {
    setError(undefined);
    try {
      const path = { kind: server.kind as "Ghost", namespace: server.namespace!, name: server.thing! };
      await got(
        api.PUT("/api/v1/servers/{kind}/{namespace}/{name}/review", {
          params: { path },
          body: { server: server.name, digest: server.digest, decision, note },
        }),
      );
    } catch (failure) {
      return setError(failure);
    }
    setNote("");
    done(
      decision === "approved"
        ? msg("servers.approved")
        : decision === "rejected"
          ? msg("servers.rejected")
          : msg("servers.withdrawn"),
    );
    onChange();
  };
  const own = server.by === me.value?.user.id && !isAdmin.value;
  return (
    <section class="stack">
      <h2>{msg("servers.review")}</h2>
      <p class="small muted">{msg("servers.reviewSays")}</p>
      <Command server={server} />
      <p class="row">
        <Tag look={review.decision === "approved" ? "good" : review.decision === "rejected" ? "bad" : "warn"}>
          {msg(`servers.decided.${review.decision}`)}
        </Tag>
        {review.by && (
          <span class="small muted">
            {msg("servers.decidedBy")}
            {userName(review.by)}
          </span>
        )}
      </p>
      {review.note && <blockquote class="servers-note">{review.note}</blockquote>}
      {!!error && <Problem error={error} />}
      {own ? (
        <p class="note">{msg("servers.ownReview")}</p>
      ) : (
        <>
          <AreaField
            label={msg("servers.note")}
            hint={msg("servers.noteHint")}
            rows={2}
            maxLength={1000}
            value={note}
            onText={setNote}
          />
          <div class="row">
            {review.decision !== "approved" && (
              <ActionButton look="primary" icon="check" act={() => decide("approved")}>
                {msg("servers.approve")}
              </ActionButton>
            )}
            {review.decision !== "rejected" && (
              <ActionButton look="danger" icon="close" act={() => decide("rejected")}>
                {msg("servers.reject")}
              </ActionButton>
            )}
            {review.decision !== "pending" && (
              <ActionButton act={() => decide("pending")}>{msg("servers.withdraw")}</ActionButton>
            )}
          </div>
        </>
      )}
    </section>
  );
}

function Command({ server }: { server: Server }) {
  const [program, ...args] = server.command ?? [];
  const env = Object.entries(server.env ?? {});
  return (
    <dl class="facts servers-command">
      <dt>{msg("servers.program")}</dt>
      <dd>
        <code>{program}</code>
      </dd>
      <dt>{msg("servers.args")}</dt>
      <dd>
        {args.length ? (
          <ol>
            {args.map((a, i) => (
              <li key={i}>
                <code>{a}</code>
              </li>
            ))}
          </ol>
        ) : (
          msg("servers.argsNone")
        )}
      </dd>
      <dt>{msg("servers.env")}</dt>
      <dd>
        {env.length ? (
          <ul>
            {env.map(([k, v]) => (
              <li key={k}>
                <code>
                  {k}={v}
                </code>
              </li>
            ))}
          </ul>
        ) : (
          msg("servers.envNone")
        )}
      </dd>
      <dt>{msg("servers.digest")}</dt>
      <dd class="mono">{server.digest}</dd>
      {server.by && (
        <>
          <dt>{msg("servers.by")}</dt>
          <dd>{userName(server.by)}</dd>
        </>
      )}
    </dl>
  );
}
