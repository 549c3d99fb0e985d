import { useState } from "preact/hooks";
import { useUserNames } from "../../features/skills/namespaces";
import { api, got, type Load, type Schema } from "../../shared/api/client";
import { me } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, AreaField, Button, Dialog, done, Problem, When } from "../../shared/ui";

type Status = Schema["ReviewStatus"];

/** whose names the users whose approval is missing. */
function whose(m: Status["missing"][number]): string {
  const members = msg(`review.from.${m.role}`, { group: m.name ?? m.group ?? "" });
  return m.admins && m.role !== "admin" ? msg("review.orAdmins", { who: members }) : members;
}

/** Needs says whose approvals a version awaits, and which requests for changes block it. */
export function Needs({
  status: load,
  skill,
  again,
}: {
  status: Load<Status | undefined>;
  skill: string;
  again: () => void;
}) {
  const person = useUserNames();
  const [dismissed, dismiss] = useState<string>();
  if (load.error) return <Problem error={load.error} again={() => void load.again()} />;
  const status = load.data;
  if (!status || (!status.missing.length && !status.requests.length)) return null;
  return (
    <div class="note warn stack tight">
      {status.missing.map((m, i) => (
        <p key={i}>{msg("review.needs", { count: m.count, who: whose(m) })}</p>
      ))}
      {status.requests.map((r) => (
        <div key={r.id} class="stack tight">
          <p>
            {r.reviewer === me.value?.user.id
              ? msg("review.blockedByYou", { n: r.version })
              : msg("review.blocked", { who: person(r.reviewer), n: r.version })}
          </p>
          <blockquote class="small">{r.note}</blockquote>
          {r.canDismiss && (
            <div class="row">
              <Button small onClick={() => dismiss(r.id)}>
                {msg("review.dismiss")}
              </Button>
            </div>
          )}
        </div>
      ))}
      {dismissed && (
        <DismissDialog
          skill={skill}
          request={dismissed}
          onClose={(changed) => {
            dismiss(undefined);
            if (changed) again();
          }}
        />
      )}
    </div>
  );
}

function DismissDialog({
  skill,
  request,
  onClose,
}: {
  skill: string;
  request: string;
  onClose: (changed?: boolean) => void;
}) {
  const [reason, setReason] = useState("");
  const [missing, setMissing] = useState(false);
  const [error, setError] = useState<unknown>();
  const act = async () => {
    setMissing(!reason.trim());
    if (!reason.trim()) return;
    try {
      await got(
        api.POST("/api/v1/skills/{skill}/change-requests/{request}/dismiss", {
          params: { path: { skill, request } },
          body: { reason: reason.trim() },
        }),
      );
      done(msg("review.dismissed"));
      onClose(true);
    } catch (refused) {
      setError(refused); // shown here, because the page behind a dialog cannot be read
    }
  };
  return (
    <Dialog
      title={msg("review.dismissTitle")}
      onClose={() => onClose()}
      actions={
        <>
          <Button onClick={() => onClose()}>{msg("ui.cancel")}</Button>
          <ActionButton look="danger" act={act}>
            {msg("review.dismiss")}
          </ActionButton>
        </>
      }
    >
      <p>{msg("review.dismissText")}</p>
      <AreaField
        label={msg("review.reason")}
        value={reason}
        onText={setReason}
        rows={3}
        error={missing ? msg("review.reasonNeeded") : undefined}
      />
      {error !== undefined && <Problem error={error} />}
    </Dialog>
  );
}

/** History lists what has happened to a version. */
export function History({ status }: { status: Load<Status | undefined> }) {
  const person = useUserNames();
  if (!status.data && !status.error) return null;
  return (
    <section class="stack tight" aria-labelledby="review-history">
      <h2 id="review-history">{msg("review.history")}</h2>
      {status.error && <p class="small muted">{msg("review.historyFailed")}</p>}
      <ol class="review-history">
        {status.data?.history.map((e, i) => (
          <li key={i}>
            <span>
              {msg(`review.events.${e.kind}`)}
              {e.by && <span class="muted"> · {person(e.by)}</span>}
              <span class="muted small">
                {" · "}
                <When time={e.at} />
              </span>
            </span>
            {e.path && (
              <code class="small">
                {e.path}
                {e.line ? `:${e.line}` : ""}
              </code>
            )}
            {e.note && <span class="small">{e.note}</span>}
          </li>
        ))}
      </ol>
    </section>
  );
}

/** TestResults shows the results of tests of a version. The hub stores none yet. */
export function TestResults() {
  return (
    <section class="stack tight" aria-labelledby="review-tests">
      <h2 id="review-tests">{msg("review.tests")}</h2>
      <p class="small muted">{msg("review.noTests")}</p>
    </section>
  );
}
