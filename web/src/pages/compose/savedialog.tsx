import { useMemo, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { pageOf } from "../../features/skills/skilladdress";
import { api, got, Refusal, useLoad, type Schema } from "../../shared/api/client";
import { hasRole, isAdmin, me } from "../../shared/api/me";
import { Diff } from "../../shared/content";
import { findMsg, msg } from "../../shared/i18n/messages";
import { translateDiagnostic } from "../../shared/servertext";
import { Button, Dialog, done, Problem, SelectField, Tag, TextField } from "../../shared/ui";
import { changes, type Changed } from "./changedfiles";
import { deleteDraft, keepRequests, requestsOf } from "./drafts";
import type { Work } from "./draftstate";
import { newestVersion } from "./fetchskill";
import { skillFile, type DraftFile } from "./files";
import { setField } from "./frontmatteredit";
import { NameTaken } from "./nametaken";
import { save } from "./upload";
import type { CheckResult } from "./validation";
import { suggestions } from "./versionhints";

interface Props {
  work: Work;
  result: CheckResult<Schema["Checked"]>;
  onClose: () => void;
}

/** SaveDialog saves a draft as a new skill, or as a new version after a review of its changes. */
export function SaveDialog({ work, result, onClose }: Props) {
  const { route } = useLocation();
  const now = result.data?.version ?? "";
  const [version, setVersion] = useState(now);
  const [changelog, setChangelog] = useState("");
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const [known, setKnown] = useState(work.newest);
  const c = result.data;
  const press = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const saved = await save(
        work,
        await called(work.files, now, version),
        c?.name || work.name || "skill",
        changelog.trim(),
        known?.number,
      );
      work.markSaved();
      deleteDraft(work.key);
      keepRequests(saved.skill, requestsOf(work.key));
      done(
        work.of
          ? msg("compose.savedVersion", { name: saved.name, n: saved.number })
          : msg("compose.savedNew", { name: saved.name }),
      );
      route(`/library/${encodeURIComponent(saved.skill)}`);
    } catch (e) {
      if (work.of && e instanceof Refusal && e.problem.code === "changed")
        setKnown(await newestVersion(work.of.id).catch(() => known));
      else setError(e);
      setBusy(false);
    }
  };
  const newer = work.of && known && known.number > (work.newest?.number ?? 0) ? known : undefined;
  const refused = c && !result.busy && (!c.saves || !c.maySave);
  return (
    <Dialog
      title={work.of ? msg("compose.saveVersionTitle", { name: work.of.name }) : msg("compose.saveTitle")}
      wide={!!work.of}
      onClose={onClose}
      actions={
        <Button look="primary" onClick={() => void press()} aria-busy={busy} disabled={busy} autofocus>
          {!work.of ? msg("compose.saveNew") : newer ? msg("compose.saveAnyway") : msg("compose.saveVersion")}
        </Button>
      }
    >
      {!!error && <Problem error={error} />}
      {!error && refused && <Refused checked={c} work={work} />}
      {c?.taken && !work.of && <NameTaken work={work} taken={c.taken} />}
      {newer && (
        <div class="note warn" role="alert">
          {msg("compose.savedMeanwhile", { n: newer.number })}
          {!newer.withheld && (
            <div>
              <a
                class="button small"
                href={`${pageOf(work.of!.id)}?tab=versions&from=${work.opened}&to=${newer.number}`}
                target="_blank"
                rel="noopener"
              >
                {msg("skill.whatChanges")}
              </a>
            </div>
          )}
        </div>
      )}
      {work.of ? <p>{becomes(work.of, known, c)}</p> : <Where work={work} />}
      <Version work={work} now={now} version={version} onVersion={setVersion} />
      <TextField label={msg("add.changelog")} maxLength={200} value={changelog} onText={setChangelog} />
      {c?.code && !c.runnable && (!work.of || isWaiting(work.of)) && (
        <p class="small muted">{msg("compose.reviewAfter")}</p>
      )}
      {work.of && <Changes work={work} />}
    </Dialog>
  );
}

/** isWaiting reports whether the current version has code that awaits a review. */
const isWaiting = (skill: Schema["SkillDetail"]) => skill.code && skill.review === "pending";

/** becomes says which version is current after a save. */
function becomes(skill: Schema["SkillDetail"], newest?: Schema["SkillVersion"], c?: Schema["Checked"]): string {
  const held =
    newest?.state === "changes-requested" ||
    (newest?.needsApproval && (newest.state === "pending" || newest.state === "rejected"));
  const waits = c?.code && !c.runnable && !isWaiting(skill);
  if (!held && !waits) return msg("compose.becomes");
  return skill.review === "rejected" ? msg("compose.waits") : msg("compose.stays", { now: skill.number });
}

/** called sets the chosen version in SKILL.md. */
async function called(files: DraftFile[], now: string, version: string): Promise<DraftFile[]> {
  if (version.trim() === now) return files;
  const yaml = await import("yaml");
  return files.map((f) =>
    f.path === skillFile ? { ...f, text: setField(yaml, f.text ?? "", "version", version.trim()) } : f,
  );
}

/** Refused shows known reasons why saving will fail. */
function Refused({ checked: c, work }: { checked: Schema["Checked"]; work: Work }) {
  const errors = c.diagnostics.filter((d) => d.severity === "error");
  return (
    <div class="note bad" role="status">
      <strong>{msg("compose.cannotSave")}</strong>
      {!c.maySave && <span>{work.of ? msg("compose.mayNot") : msg("compose.mayNotHere")}</span>}
      {errors.length > 0 && (
        <ul>
          {errors.map(translateDiagnostic).map((d, i) => (
            <li key={i}>
              <code>
                {d.file}
                {d.line > 0 && `:${d.line}:${d.column}`}
              </code>{" "}
              {d.message}
              {d.fix && <span class="muted"> — {d.fix}</span>}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Where selects the namespace of a new skill. */
function Where({ work }: { work: Work }) {
  const groups = useLoad(
    async (signal) => (await got(api.GET("/api/v1/groups", { params: { query: { limit: 500 } }, signal }))).items,
    [],
  );
  const mine = `user:${me.value?.user.id ?? ""}`;
  const options: [string, string][] = [[mine, msg("compose.own")]];
  for (const g of groups.data ?? [])
    if (hasRole(g.id, "developer"))
      options.push([`group:${g.id}`, msg("compose.inGroup", { name: g.display || g.name })]);
  if (isAdmin.value) options.push(["public", msg("compose.everybody")]);
  return (
    <SelectField label={msg("compose.where")} value={work.namespace ?? mine} onText={work.place} options={options} />
  );
}

function Version({
  work,
  now,
  version,
  onVersion,
}: {
  work: Work;
  now: string;
  version: string;
  onVersion: (v: string) => void;
}) {
  const changed = useMemo(() => changes(work.saved, work.files), [work.files]);
  const before = work.of?.version ?? "";
  const same = !!work.of && version !== "" && version === before;
  const next = work.of ? suggestions(before, changed).filter((v) => v !== version) : [];
  return (
    <div class="stack tight">
      <TextField
        label={msg("compose.versionField")}
        hint={same ? msg("compose.sameVersion", { v: before }) : msg("compose.noVersion")}
        value={version}
        onText={onVersion}
        autocomplete="off"
      />
      {next.length > 0 && (version === before || version === now || next.length < 3) && (
        <div class="row small">
          <span class="muted">{msg("compose.suggest")}</span>
          {next.map((v) => (
            <Button key={v} small onClick={() => onVersion(v)}>
              {v}
            </Button>
          ))}
        </div>
      )}
    </div>
  );
}

const looks: Record<Changed["how"], "good" | "bad" | ""> = { added: "good", removed: "bad", changed: "" };

function Changes({ work }: { work: Work }) {
  const all = useMemo(() => changes(work.saved, work.files), [work.files]);
  return (
    <section class="stack">
      <div>
        <h3>{msg("compose.whatChanges")}</h3>
        <p class="small muted">
          {all.length ? msg("compose.fromNow", { n: work.opened! }) : msg("compose.nothingChanges")}
        </p>
      </div>
      {all.map((c, i) => (
        <details key={c.path} open={i < 3} class="compose-change">
          <summary>
            <span class="mono">{c.path}</span> <Tag look={looks[c.how]}>{findMsg("compose.howNames", c.how)}</Tag>
          </summary>
          {c.diff === undefined ? (
            <p class="small muted">{msg("compose.notText")}</p>
          ) : (
            <Diff diff={c.diff} path={c.path} />
          )}
        </details>
      ))}
    </section>
  );
}
