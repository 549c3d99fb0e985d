import { useState } from "preact/hooks";
import { personName, usePeople } from "../account/people";
import { api, got, type Schema } from "../api/client";
import { isAdmin, me } from "../api/me";
import { ActionButton, AreaField, done, Problem, Tag } from "../ui";
import type { Server } from "./state";
import { w } from "./words";

type Decision = Schema["ServerDecision"]["decision"];

/** The command of a server as it would run, and what a person decides about it. */
export function Review({ server, onChange }: { server: Server; onChange: () => void }) {
  usePeople();
  const t = w();
  const [note, setNote] = useState("");
  const [error, setError] = useState<unknown>();
  const review = server.review;
  if (!review || !server.command) return null;
  const decide = async (decision: Decision) => {
    setError(undefined);
    try {
      const path = { kind: server.kind as "Ghost", namespace: server.namespace!, name: server.thing! };
      await got(api.PUT("/api/v1/servers/{kind}/{namespace}/{name}/review", { params: { path }, body: { server: server.name, digest: server.digest, decision, note } }));
    } catch (failure) {
      return setError(failure);
    }
    setNote("");
    done(decision === "approved" ? t.approved : decision === "rejected" ? t.rejected : t.withdrawn);
    onChange();
  };
  const own = server.by === me.value?.user.id && !isAdmin.value;
  return (
    <section class="stack">
      <h2>{t.review}</h2>
      <p class="small muted">{t.reviewSays}</p>
      <Command server={server} />
      <p class="row">
        <Tag look={review.decision === "approved" ? "good" : review.decision === "rejected" ? "bad" : "warn"}>{t.decided[review.decision]}</Tag>
        {review.by && <span class="small muted">{t.decidedBy}{personName(review.by)}</span>}
      </p>
      {review.note && <blockquote class="servers-note">{review.note}</blockquote>}
      {!!error && <Problem error={error} />}
      {own ? <p class="note">{t.ownReview}</p> : (
        <>
          <AreaField label={t.note} hint={t.noteHint} rows={2} maxLength={1000} value={note} onText={setNote} />
          <div class="row">
            {review.decision !== "approved" && <ActionButton look="primary" icon="check" act={() => decide("approved")}>{t.approve}</ActionButton>}
            {review.decision !== "rejected" && <ActionButton look="danger" icon="close" act={() => decide("rejected")}>{t.reject}</ActionButton>}
            {review.decision !== "pending" && <ActionButton act={() => decide("pending")}>{t.withdraw}</ActionButton>}
          </div>
        </>
      )}
    </section>
  );
}

function Command({ server }: { server: Server }) {
  const t = w();
  const [program, ...args] = server.command ?? [];
  const env = Object.entries(server.env ?? {});
  return (
    <dl class="facts servers-command">
      <dt>{t.program}</dt><dd><code>{program}</code></dd>
      <dt>{t.args}</dt><dd>{args.length ? <ol>{args.map((a, i) => <li key={i}><code>{a}</code></li>)}</ol> : t.argsNone}</dd>
      <dt>{t.env}</dt><dd>{env.length ? <ul>{env.map(([k, v]) => <li key={k}><code>{k}={v}</code></li>)}</ul> : t.envNone}</dd>
      <dt>{t.digest}</dt><dd class="mono">{server.digest}</dd>
      {server.by && <><dt>{t.by}</dt><dd>{personName(server.by)}</dd></>}
    </dl>
  );
}
