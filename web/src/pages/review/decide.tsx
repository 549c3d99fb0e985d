import { useId, useState } from "preact/hooks";
import { cleared } from "../../features/skills/versionstate";
import { api, got, type Load, type Schema } from "../../shared/api/client";
import { me, mayReview } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, AreaField, done, useConfirm } from "../../shared/ui";
import { CommentForm } from "./commentform";
import { OpenThreads, Unloaded } from "./comments";
import { useDiscussion } from "./discussion";
import { noteKey } from "./drafts";
import type { Loaded } from "./loaded";

type Version = Schema["SkillVersion"];

/**
 * stopsUse reports whether a decision takes the current version out of use. While code is awaiting review, users can
 * use the instructions of its version, until a reviewer rejects it.
 */
const stopsUse = (v: Version, decision: Schema["Decision"]["decision"]) => {
  if (!v.current || decision === "approved") return false;
  if (cleared(v)) return decision !== "pending" || v.code || v.needsApproval;
  return v.state === "pending" && decision !== "pending";
};

/**
 * nextCurrent returns the version that replaces a current version that is no longer allowed: the
 * newest earlier version that is cleared or, if there is none, the newest later one.
 */
async function nextCurrent(skill: string, number: number): Promise<Version | undefined> {
  let later: Version | undefined;
  for (let after: string | undefined; ;) {
    const params = { path: { skill }, query: { after } };
    const page = await got(api.GET("/api/v1/skills/{skill}/versions", { params }));
    const found = page.items.filter((v) => v.number !== number && cleared(v));
    later ??= found.find((v) => v.number > number);
    const earlier = found.find((v) => v.number < number);
    if (earlier || !page.next) return earlier ?? later;
    after = page.next;
  }
}

/** Decide records the decision about a version. It is bound to the digest on the screen. */
export function Decide({
  all: { skill, version: v },
  status,
  again,
}: {
  all: Loaded;
  status: Load<Schema["ReviewStatus"] | undefined>;
  again: () => void;
}) {
  const { may, add, drafts } = useDiscussion();
  const [note, showNote] = useState(drafts.text(noteKey) ?? "");
  const setNote = (text: string) => {
    drafts.keep(noteKey, text);
    showNote(text);
  };
  const [missing, setMissing] = useState<string>();
  const [busy, setBusy] = useState(false);
  const why = useId();
  const confirm = useConfirm();
  const decide = async (decision: Schema["Decision"]["decision"], message: string, label = "") => {
    const lacks = (decision === "rejected" || decision === "changes-requested") && !note.trim();
    setMissing(lacks ? msg("review.noteNeeded") : undefined);
    if (lacks) return;
    const params = { path: { skill: skill.id, version: String(v.number) } };
    const body = { decision, digest: v.digest, note: note.trim() };
    const act = async () => {
      await send(() => got(api.PUT("/api/v1/skills/{skill}/versions/{version}/review", { params, body })));
      done(message);
      again();
    };
    if (!stopsUse(v, decision)) return act();
    const next = await nextCurrent(skill.id, v.number);
    confirm.ask({
      title: msg("review.stopTitle", { n: v.number }),
      children: (
        <p>
          {next
            ? msg("review.stopNext", { n: next.number })
            : decision === "pending"
              ? msg(v.code ? "review.stopCode" : "review.stopText", { n: v.number })
              : msg("review.stopAll")}
        </p>
      ),
      yes: label,
      danger: true,
      act,
    });
  };
  /** send clears the note once it is stored. Until then it does not change. */
  const send = async (act: () => Promise<unknown>) => {
    setBusy(true);
    await act().finally(() => setBusy(false));
    setNote("");
  };
  const comment = async () => {
    setMissing(note.trim() ? undefined : msg("review.commentNeeded"));
    if (!note.trim()) return;
    await send(() => add({}, note.trim()));
    done(msg("review.commentAdded"));
  };
  const approvals = v.approvers.length;
  const several = v.requiredApprovers > 1;
  const approved = v.code ? "review.approved" : "review.approvedVersion"; // a request may have held back a text
  const user = me.value?.user.id ?? "";
  const waits = !!status.data && status.data.missing.length + status.data.requests.length > 0;
  const refusal =
    waits && !status.data!.canApprove && v.review !== "approved"
      ? v.approvers.includes(user)
        ? "yours"
        : v.createdBy === user
          ? "uploader"
          : "notCounted"
      : undefined;
  if (!mayReview(skill.namespace, v))
    return (
      <div class="card stack">
        <p>{msg("review.cannot")}</p>
        {may && (
          <CommentForm
            label={msg("review.note")}
            button={msg("review.addComment")}
            draft={noteKey}
            send={async (text) => {
              await add({}, text);
              done(msg("review.commentAdded"));
            }}
          />
        )}
        <Unloaded />
      </div>
    );
  return (
    <div class="card stack">
      <h2>{msg("review.decide")}</h2>
      {v.code && <p class="small">{msg("review.means", { count: v.files })}</p>}
      <p class="mono small">{v.digest}</p>
      {several && <p class="small">{msg("review.required", { a: approvals, n: v.requiredApprovers })}</p>}
      <AreaField
        label={msg("review.note")}
        hint={msg("review.noteHint")}
        error={missing}
        value={note}
        onText={setNote}
        rows={3}
        readOnly={busy}
      />
      <Unloaded />
      <OpenThreads />
      {status.error && <p class="note bad small">{msg("review.statusFailed")}</p>}
      {refusal && (
        <p class="small muted" id={why}>
          {msg(`review.refusal.${refusal}`)}
        </p>
      )}
      <div class="row">
        {v.review !== "approved" && (refusal || status.data?.canApprove || !status.data) && (
          <ActionButton
            look="primary"
            icon="check"
            aria-disabled={!status.data?.canApprove}
            aria-describedby={refusal && why}
            act={() => decide("approved", msg(status.data!.approvalSuffices ? approved : "review.approvalStored"))}
          >
            {v.code ? msg("review.approve") : msg("review.approveVersion")}
          </ActionButton>
        )}
        {v.state !== "changes-requested" && (
          <ActionButton
            icon="compose"
            act={() => decide("changes-requested", msg("review.changesRequested"), msg("review.requestChanges"))}
          >
            {msg("review.requestChanges")}
          </ActionButton>
        )}
        {may && <ActionButton act={comment}>{msg("review.addComment")}</ActionButton>}
        {v.state !== "rejected" && (
          <ActionButton
            look="danger"
            icon="close"
            act={() => decide("rejected", msg("review.rejected"), msg("review.reject"))}
          >
            {msg("review.reject")}
          </ActionButton>
        )}
        {(v.review !== "pending" || approvals > 0) && (
          <ActionButton act={() => decide("pending", msg("review.taken"), msg("review.takeBack"))}>
            {msg("review.takeBack")}
          </ActionButton>
        )}
      </div>
      {confirm.open}
    </div>
  );
}
